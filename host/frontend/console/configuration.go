package console

import (
	"context"
	"sync"
	"time"
)

// Configuration has the settings in force, without secrets.
type Configuration struct {
	// File is the configuration file. Empty means the built-in one.
	File  string
	Items []Setting
}

// Setting is one setting.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Origin is the source of the value.
	Origin string `json:"origin"`
	// Default is the default, empty where there is none to show.
	Default string `json:"default,omitempty"`
}

// Reloaded is the result of a reload.
type Reloaded struct {
	// Changed are the keys whose new values are in force, NeedRestart those whose new values need a restart.
	Changed     []string `json:"changed"`
	NeedRestart []string `json:"needRestart"`
	// Others are keys that this process does not use. Other processes apply them themselves.
	Others   []string `json:"others"`
	Warnings []string `json:"warnings"`
}

// lastReload is the last reload from this console.
type lastReload struct {
	mu    sync.Mutex
	state reloadJSON // guarded by mu
}

type reloadJSON struct {
	Can     bool      `json:"can"`
	Last    time.Time `json:"last,omitzero"`
	OK      *bool     `json:"ok,omitempty"`
	Error   string    `json:"error,omitempty"`
	Pending []string  `json:"pending,omitempty"`
}

type configurationJSON struct {
	File   string     `json:"file"`
	Items  []Setting  `json:"items"`
	Reload reloadJSON `json:"reload"`
}

func (c *Console) configuration(*request) (any, error) {
	now := c.options.Settings.Configuration()
	c.reloads.mu.Lock()
	defer c.reloads.mu.Unlock()
	state := c.reloads.state
	state.Can = true
	return &configurationJSON{now.File, append([]Setting{}, now.Items...), state}, nil
}

// reloadAnswer is the response to a reload.
type reloadAnswer struct {
	*Reloaded
	Unchanged bool `json:"unchanged"`
}

// reload reloads the configuration. The implementation also records it, under the person's name.
func (c *Console) reload(q *request) (any, error) {
	var body struct{}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	answer, err := c.options.Settings.Reload(context.WithoutCancel(q.Context()), q.subject())
	ok := err == nil
	c.reloads.mu.Lock()
	defer c.reloads.mu.Unlock()
	c.reloads.state = reloadJSON{Last: c.now().UTC(), OK: &ok}
	if err != nil {
		c.reloads.state.Error = err.Error()
		return nil, &fault{code: codeInvalid, text: said("%v", err),
			remedy: said("correct it (hako config check) and reload again; the previous configuration stays in force")}
	}
	c.reloads.state.Pending = answer.NeedRestart
	return &reloadAnswer{answer, len(answer.Changed)+len(answer.NeedRestart)+len(answer.Others) == 0}, nil
}
