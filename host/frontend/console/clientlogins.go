package console

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

// ClientLogins has the logins of MCP clients at hako's authorization server.
type ClientLogins interface {
	List(ctx context.Context) ([]*connection.Login, error)
	// End ends a login at all replicas and returns it, or connection.ErrNoLogin.
	End(ctx context.Context, id string) (*connection.Login, error)
}

var faultNoLogin = &fault{code: codeNotFound, text: manifest.Text{
	"en": "There is no such login, or it has ended.", "ja": "そのログインは存在しないか、すでに終了しています。",
}, remedy: manifest.Text{"en": "Reload the list.", "ja": "一覧を再読み込みしてください。"}}

// clientLogins lists the logins of MCP clients.
func (c *Console) clientLogins(q *request) (any, error) {
	items := []*connection.Login{}
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
	var ended *connection.Login
	err := c.audited(q, o, func() (err error) {
		switch ended, err = c.options.ClientLogins.End(q.lasting(), id); {
		case errors.Is(err, connection.ErrNoLogin):
			return faultNoLogin
		case err != nil:
			return err
		}
		ended.Describe(o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}
