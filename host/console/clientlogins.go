package console

import (
	"context"
	"strings"
	"time"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/manifest"
)

// ClientLogins has the logins of MCP clients at hako's authorization server.
type ClientLogins interface {
	List(ctx context.Context) ([]*ClientLogin, error)
	// End ends a login at all replicas and returns it, or nil if there is none.
	End(ctx context.Context, id string) (*ClientLogin, error)
}

// ClientLogin is a login of an MCP client, with the fields of authserver.ActiveLogin.
type ClientLogin struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Tenant  string    `json:"tenant,omitempty"`
	Client  string    `json:"client,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Describe adds a login to the record of an operation on it.
func (l *ClientLogin) Describe(o *audit.Operation) {
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

var faultNoLogin = &fault{code: codeNotFound, text: manifest.Text{
	"en": "There is no such login, or it has ended.", "ja": "そのログインは存在しないか、すでに終了しています。",
}, remedy: manifest.Text{"en": "Reload the list.", "ja": "一覧を再読み込みしてください。"}}

// clientLogins lists the logins of MCP clients.
func (c *Console) clientLogins(q *request) (any, error) {
	items := []*ClientLogin{}
	if c.options.ClientLogins != nil {
		list, err := c.options.ClientLogins.List(q.Context())
		if err != nil {
			return nil, err
		}
		items = append(items, list...)
	}
	return listed(items), nil
}

// endLogin ends a login of an MCP client with its tokens, at all replicas.
func (c *Console) endLogin(q *request) (any, error) {
	id := q.PathValue("id")
	if c.options.ClientLogins == nil {
		return nil, faultNoLogin
	}
	o := &audit.Operation{Action: "login.end", Target: audit.Target{Name: id}}
	var ended *ClientLogin
	err := c.audited(q, o, func() (err error) {
		if ended, err = c.options.ClientLogins.End(q.lasting(), id); err != nil {
			return err
		}
		if ended == nil {
			return faultNoLogin
		}
		ended.Describe(o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}
