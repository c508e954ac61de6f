package console

import (
	"slices"
	"time"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// upstreamJSON is an upstream MCP server.
type upstreamJSON struct {
	Name      string          `json:"name"`
	State     mcpclient.State `json:"state"`
	Transport string          `json:"transport"`
	Prefix    string          `json:"prefix"`
	Protocol  string          `json:"protocol,omitempty"`
	Server    string          `json:"server,omitempty"`
	Version   string          `json:"version,omitempty"`
	Tools     int             `json:"tools"`
	Prompts   int             `json:"prompts"`
	Resources int             `json:"resources"`
	Since     time.Time       `json:"since,omitzero"`
	Error     string          `json:"error,omitempty"`
	Retry     time.Time       `json:"retry,omitzero"`
	Omitted   []string        `json:"omitted,omitempty"`
	Restarts  int             `json:"restarts"`
}

func (c *Console) upstreams(*request) (any, error) {
	items := []upstreamJSON{}
	for _, s := range c.upstreamStatus() {
		items = append(items, upstreamJSON{
			s.Name, s.State, s.Transport, s.Prefix, s.Protocol, s.Server, s.Version, s.Tools, s.Prompts, s.Resources,
			s.Since.UTC(), s.Error, s.Retry.UTC(), s.Omitted, s.Restarts,
		})
	}
	return listed(items), nil
}

func (c *Console) upstreamStatus() []mcpclient.Status {
	if c.options.Upstreams == nil {
		return nil
	}
	return c.options.Upstreams.Status()
}

// workspaceJSON is a Slack workspace.
type workspaceJSON struct {
	Name       string         `json:"name"`
	SocketMode bool           `json:"socketMode"`
	State      slackbot.State `json:"state"`
	Since      time.Time      `json:"since,omitzero"`
	Error      string         `json:"error,omitempty"`
}

func (c *Console) slack(*request) (any, error) {
	items := []workspaceJSON{}
	if c.options.Slack != nil {
		for _, w := range c.options.Slack() {
			items = append(items, workspaceJSON{w.Name, w.SocketMode, w.State, w.Since.UTC(), w.Error})
		}
	}
	return listed(items), nil
}

// credentialJSON is a credential, without its secret.
type credentialJSON struct {
	Name     string            `json:"name"`
	Tenant   string            `json:"tenant"`
	Provider string            `json:"provider"`
	State    string            `json:"state"`
	Expires  time.Time         `json:"expires,omitzero"`
	Renewed  time.Time         `json:"renewed,omitzero"`
	Facts    map[string]string `json:"facts,omitempty"`
	Remedy   string            `json:"remedy,omitempty"`
}

func (c *Console) credentials(q *request) (any, error) {
	list, err := c.credentialStatus(q)
	if err != nil {
		return nil, err
	}
	items := []credentialJSON{}
	for _, s := range list {
		items = append(items, credentialJSON{s.Credential, s.Tenant, s.Provider, s.State, s.Expires.UTC(),
			s.Renewed.UTC(), s.Public, s.Remedy})
	}
	return listed(items), nil
}

func (c *Console) credentialStatus(q *request) ([]credential.Status, error) {
	if c.options.Credentials == nil {
		return nil, nil
	}
	return c.options.Credentials.Status(q.Context())
}

// replicaJSON is a hako process over the store.
type replicaJSON struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
	Self    bool      `json:"self"`
	// Lost reports whether it ended without saying so, after Seen.
	Lost bool `json:"lost,omitempty"`
}

func (c *Console) replicas(q *request) (any, error) {
	live, err := c.options.Store.Replicas(q.Context())
	if err != nil {
		return nil, err
	}
	lost, err := c.options.Store.LostReplicas(q.Context())
	if err != nil {
		return nil, err
	}
	items := []replicaJSON{}
	for i, r := range slices.Concat(live, lost) {
		items = append(items, replicaJSON{ID: r.ID, Host: r.Host, Version: r.Version, Started: r.Started.UTC(),
			Seen: r.Seen.UTC(), Self: r.ID == c.options.Store.Replica(), Lost: i >= len(live)})
	}
	return listed(items), nil
}
