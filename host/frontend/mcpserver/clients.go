package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
)

// opener identifies the caller that opened a session, as the store keeps it.
type opener struct {
	User    string `json:"user,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Token   string `json:"token,omitempty"`
	Address string `json:"address,omitempty"`
}

func openerOf(x *exchange) opener {
	o := opener{Address: x.address}
	if i := x.identity; i != nil {
		o.User, o.Tenant, o.Token = i.User, i.Tenant, i.Token
	}
	return o
}

// maxClients bounds the list of clients.
const maxClients = 500

// Clients lists the connected clients: those on stdio, and the sessions that were used last. The error is the store's.
func (s *Server) Clients(ctx context.Context) ([]connection.Client, error) {
	listed, err := s.options.Sessions.List(ctx, maxClients)
	if err != nil {
		return nil, err
	}
	var list []connection.Client
	for _, conn := range s.stdio.all() {
		c := connection.Client{Opened: conn.opened, Here: true, Requests: conn.unanswered()}
		if session := conn.session.Load(); session != nil {
			introduce(&c, session.InitializeParams())
		}
		list = append(list, c)
	}
	for i := range listed {
		list = append(list, s.sessions.client(&listed[i]))
	}
	return list, nil
}

// client describes a session, from the store and from this process.
func (t *sessionTable) client(l *sessionstore.Listed) connection.Client {
	c := connection.Client{ID: l.Key, Opened: l.Opened, Used: l.Used}
	opened, by := new(mcp.InitializeParams), opener{}
	if json.Unmarshal(l.Opening, opened) == nil { // the store may have been changed
		introduce(&c, opened)
	}
	if json.Unmarshal(l.Opener, &by) == nil {
		c.User, c.Tenant, c.Token, c.Address = by.User, by.Tenant, by.Token, by.Address
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byKey[l.Key]; s != nil {
		c.Here, c.Calls, c.Requests, c.Streams = true, s.called, s.requests, s.streams
		if s.lastUsed.After(c.Used) {
			c.Used = s.lastUsed
		}
	}
	return c
}

// introduce sets the client's own claims. opened may be nil.
func introduce(c *connection.Client, opened *mcp.InitializeParams) {
	if opened == nil {
		return
	}
	c.Protocol = opened.ProtocolVersion
	if opened.ClientInfo != nil {
		c.Name, c.Version = opened.ClientInfo.Name, opened.ClientInfo.Version
	}
}

// EndClient ends the session with the ID of a Client at all replicas, and reports whether there was one. Calls in
// flight finish. The client's next request is answered like one of an unknown session, so most clients open another.
// The error is the store's.
func (s *Server) EndClient(ctx context.Context, id string) (there bool, err error) {
	if there, err = s.options.Sessions.Remove(ctx, id); there {
		s.sessions.drop(s.sessions.byStoreKey(id))
	}
	return there, err
}
