package console

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/hako-run/hako/host/audit"
)

// Clients has the MCP clients that are connected.
type Clients interface {
	Clients(ctx context.Context) ([]Client, error)
	// EndClient ends a session at all replicas and reports whether there was one.
	EndClient(ctx context.Context, key string) (bool, error)
}

// Client is a connected MCP client, with the fields of mcpserver.Client.
type Client struct {
	Key, Name, Version, Protocol string
	User, Tenant, Token, Address string
	Opened, Used                 time.Time
	Here                         bool
	Calls                        uint64
	Requests, Streams            int
}

// clientJSON is a connected MCP client. ID is empty on stdio; Here, Calls, Requests and Streams are those of this
// process.
type clientJSON struct {
	ID       string    `json:"id"`
	Client   string    `json:"client"`
	Version  string    `json:"version"`
	Protocol string    `json:"protocol"`
	User     string    `json:"user"`
	Tenant   string    `json:"tenant"`
	Token    string    `json:"token"`
	Address  string    `json:"address"`
	Frontend string    `json:"frontend"`
	Since    time.Time `json:"since,omitzero"`
	Used     time.Time `json:"used,omitzero"`
	Here     bool      `json:"here"`
	Calls    uint64    `json:"calls"`
	Requests int       `json:"requests"`
	Streams  int       `json:"streams"`
}

// clientsJSON are the connected clients. Replica names this process if there are others.
type clientsJSON struct {
	listJSON[clientJSON]
	Replica string `json:"replica,omitempty"`
}

func (c *Console) clients(q *request) (any, error) {
	answer := &clientsJSON{listJSON: listJSON[clientJSON]{Items: []clientJSON{}}}
	if c.options.Clients == nil {
		return answer, nil
	}
	list, err := c.options.Clients.Clients(q.Context())
	if err != nil {
		return nil, err
	}
	for i := range list {
		answer.Items = append(answer.Items, newClient(&list[i]))
	}
	answer.Replica, err = c.alone(q.Context())
	return answer, err
}

func newClient(m *Client) clientJSON {
	frontend := "mcp-http"
	if m.Key == "" {
		frontend = "mcp-stdio"
	}
	return clientJSON{
		m.Key, m.Name, m.Version, m.Protocol, m.User, m.Tenant, m.Token, m.Address, frontend, m.Opened.UTC(),
		m.Used.UTC(), m.Here, m.Calls, m.Requests, m.Streams,
	}
}

// clientID is the form of a session's key.
var clientID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// endClient ends the session of an MCP client at all replicas.
func (c *Console) endClient(q *request) (any, error) {
	var body struct{}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	id := q.PathValue("id")
	if c.options.Clients == nil || !clientID.MatchString(id) {
		return nil, notFound("session", id)
	}
	list, err := c.options.Clients.Clients(q.Context())
	if err != nil {
		return nil, err
	}
	o := &audit.Operation{Action: "session.end", Detail: map[string]string{"session": id}}
	if i := slices.IndexFunc(list, func(m Client) bool { return m.Key == id }); i >= 0 {
		o.Subject.Tenant = list[i].Tenant
		o.Detail["client"], o.Detail["user"] = list[i].Name, list[i].User
	}
	err = c.audited(q, o, func() error {
		there, err := c.options.Clients.EndClient(q.lasting(), id)
		if err == nil && !there {
			return notFound("session", id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return struct{}{}, nil
}
