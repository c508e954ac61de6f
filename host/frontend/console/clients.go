package console

import (
	"context"
	"regexp"
	"slices"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/govern/audit"
)

// Clients has the MCP clients that are connected.
type Clients interface {
	Clients(ctx context.Context) ([]connection.Client, error)
	// EndClient ends a session at all replicas and reports whether there was one.
	EndClient(ctx context.Context, id string) (bool, error)
}

// clientJSON is a connected MCP client with its frontend. Here, Calls, Requests and Streams are those of this process.
type clientJSON struct {
	connection.Client
	Frontend string `json:"frontend"`
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
	for _, client := range list {
		answer.Items = append(answer.Items, newClient(client))
	}
	answer.Replica, err = c.replicaName(q.Context())
	return answer, err
}

func newClient(c connection.Client) clientJSON {
	frontend := "mcp-http"
	if c.ID == "" {
		frontend = "mcp-stdio"
	}
	c.Opened, c.Used = c.Opened.UTC(), c.Used.UTC()
	return clientJSON{c, frontend}
}

// clientID is the form of the ID of a session.
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
	if i := slices.IndexFunc(list, func(m connection.Client) bool { return m.ID == id }); i >= 0 {
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
