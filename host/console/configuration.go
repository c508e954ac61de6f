package console

import (
	"context"
	"sync"
	"time"
)

// Configuration is what is in force, as it may be shown: secrets are not in it.
type Configuration struct {
	// File is the configuration file; empty means the built-in one.
	File  string
	Items []Setting
}

// Setting is one value.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Origin is where it was set.
	Origin string `json:"origin"`
}

// Reloaded says what became of a configuration that was read again.
type Reloaded struct {
	// Changed are the keys with new values in force, NeedRestart those whose new values wait for a restart.
	Changed     []string `json:"changed"`
	NeedRestart []string `json:"needRestart"`
	// Others are those that the process which serves the console does not use, and other ones take up by themselves.
	Others   []string `json:"others"`
	Warnings []string `json:"warnings"`
}

// lastReload is the last reload that this console was asked for.
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

// reloadAnswer is what the person is told.
type reloadAnswer struct {
	*Reloaded
	Unchanged bool `json:"unchanged"`
}

// reload has the configuration read again. Who does that also records it, under the person's name.
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
			remedy: said("mend it (hako config check) and reload again; what was in force stays in force")}
	}
	c.reloads.state.Pending = answer.NeedRestart
	return &reloadAnswer{answer, len(answer.Changed)+len(answer.NeedRestart)+len(answer.Others) == 0}, nil
}
