// Package connection describes the MCP clients that use a server, as operators see them: Client is one that is
// connected now, Login the login of one at hako's authorization server, and Load what all of them use of a process. The
// server and its stores return them; console, metrics and the command line show them.
package connection

import (
	"errors"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
)

// Client is a connected client: a session over HTTP at any replica, or a client on stdio. Clients of MCP 2026-07-28 and
// later have no sessions over HTTP, so they are not connected between their requests.
type Client struct {
	// ID identifies the session to the operation that ends it. It is empty on stdio. It does not let anybody use the
	// session.
	ID string `json:"id"`
	// Name and Version are the client's own claims; Protocol is the version that it requested.
	Name     string `json:"client"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	// User, Tenant and Token, its name, are empty without authentication. Address is where the session was opened from.
	User    string `json:"user"`
	Tenant  string `json:"tenant"`
	Token   string `json:"token"`
	Address string `json:"address"`
	// Opened is zero if an earlier version of hako opened the session. Used may lag behind by a minute or so for
	// sessions of other replicas.
	Opened time.Time `json:"since,omitzero"`
	Used   time.Time `json:"used,omitzero"`
	// Here is set if this process has served the session. The following fields count its calls of tools, requests in
	// flight and open streams in this process.
	Here     bool   `json:"here"`
	Calls    uint64 `json:"calls"`
	Requests int    `json:"requests"`
	Streams  int    `json:"streams"`
}

// Load is the current use of the MCP server of a process.
type Load struct {
	// Requests are those over HTTP in flight, Streams the open subscription streams of 2026-07-28 and those before it
	// that go on here from another replica, Sessions the open sessions before it.
	Requests, Streams, Sessions int
}

// Login is a login that has not ended. It has no secrets.
type Login struct {
	ID string `json:"id"`
	// User and Tenant are the person's. Tenant may be empty.
	User   string `json:"user"`
	Tenant string `json:"tenant,omitempty"`
	// Client is the client's own name.
	Client  string    `json:"client,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// ErrNoLogin means that no login with an ID is active.
var ErrNoLogin = errors.New("there is no such login: 'hako token list' shows them")

// Describe adds a login to the record of an operation on it.
func (l *Login) Describe(o *audit.Operation) {
	o.Target.Name = l.ID
	o.Detail = map[string]string{"user": l.User}
	for key, value := range map[string]string{
		"tenant": l.Tenant, "client": l.Client, "scopes": strings.Join(l.Scopes, " "),
	} {
		if value != "" {
			o.Detail[key] = value
		}
	}
}
