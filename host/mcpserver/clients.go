package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// Client is a connected client, as operators see it: a session over HTTP at any replica, or a client on stdio. Clients
// of MCP 2026-07-28 and later have no sessions over HTTP, so they are not connected between their requests.
type Client struct {
	// Key identifies the session to EndClient. It is empty on stdio. It does not let anybody use the session.
	Key string
	// Name and Version are the client's own claims; Protocol is the version that it requested.
	Name, Version, Protocol string
	// User, Tenant and Token, its name, are empty without authentication. Address is where the session was opened from.
	User, Tenant, Token, Address string
	// Opened is zero if an earlier version of hako opened the session. Used may lag behind by a minute or so for
	// sessions of other replicas.
	Opened, Used time.Time
	// Here is set if this process has served the session. The following fields count its calls of tools, requests in
	// flight and open streams in this process.
	Here              bool
	Calls             uint64
	Requests, Streams int
}

// opener identifies the caller that opened a session, as the store keeps it.
type opener struct {
	User    string `json:"user,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Token   string `json:"token,omitempty"`
	Address string `json:"address,omitempty"`
}

func openerOf(over *exchange) opener {
	o := opener{Address: over.address}
	if i := over.identity; i != nil {
		o.User, o.Tenant, o.Token = i.User, i.Tenant, i.Token
	}
	return o
}

// maxClients bounds the list of clients.
const maxClients = 500

// Clients lists the connected clients: those on stdio, and the sessions that were used last. The error is the store's.
func (s *Server) Clients(ctx context.Context) ([]Client, error) {
	listed, err := s.options.Sessions.List(ctx, maxClients)
	if err != nil {
		return nil, err
	}
	var list []Client
	for _, conn := range s.stdio.all() {
		c := Client{Opened: conn.opened, Here: true, Requests: conn.unanswered()}
		if session := conn.session.Load(); session != nil {
			c.introduce(session.InitializeParams())
		}
		list = append(list, c)
	}
	for i := range listed {
		list = append(list, s.sessions.client(&listed[i]))
	}
	return list, nil
}

// client describes a session, from the store and from this process.
func (t *sessions) client(l *sessionstore.Listed) Client {
	c := Client{Key: l.Key, Opened: l.Opened, Used: l.Used}
	opened, by := new(mcp.InitializeParams), opener{}
	if json.Unmarshal(l.Opening, opened) == nil { // the store may have been changed
		c.introduce(opened)
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
func (c *Client) introduce(opened *mcp.InitializeParams) {
	if opened == nil {
		return
	}
	c.Protocol = opened.ProtocolVersion
	if opened.ClientInfo != nil {
		c.Name, c.Version = opened.ClientInfo.Name, opened.ClientInfo.Version
	}
}

// EndClient ends the session with the key of a Client at all replicas, and reports whether there was one. Calls in
// flight finish. The client's next request is answered like one of an unknown session, so most clients open another.
// The error is the store's.
func (s *Server) EndClient(ctx context.Context, key string) (there bool, err error) {
	if there, err = s.options.Sessions.Remove(ctx, key); there {
		s.sessions.drop(s.sessions.byStoreKey(key))
	}
	return there, err
}
