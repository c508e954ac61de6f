package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

// Access manages the access of people and programs, without a running server: bearer tokens, logins of MCP clients and
// sessions in the console. Running servers over the same store follow.
type Access struct {
	Tokens *bearer.Issued

	logins *authserver.Logins
	store  *store.Store
	config *config.Config
}

// OpenAccess returns the access of a configuration with its open store. It fails with the store's error.
func OpenAccess(ctx context.Context, c *config.Config, s *store.Store) (*Access, error) {
	tokens, err := bearer.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	logins, err := authserver.OpenLogins(ctx, s)
	return &Access{tokens, logins, s, c}, err
}

// AccessList lists tokens, logins and blocked users.
type AccessList struct {
	Tokens []console.TokenItem `json:"tokens"`
	Logins []*connection.Login `json:"logins"`
	// Blocks are the users whose tokens are refused.
	Blocks []bearer.Block `json:"blocks,omitempty"`
}

// List returns the tokens of the store and the configuration, and the logins of MCP clients.
func (a *Access) List(ctx context.Context) (*AccessList, error) {
	records, err := a.Tokens.List(ctx)
	if err != nil {
		return nil, err
	}
	logins, err := a.logins.List(ctx)
	if err != nil {
		return nil, err
	}
	blocks, err := a.Tokens.Blocks(ctx)
	return &AccessList{console.TokenItems(records, ConfiguredTokens(a.config), time.Now()),
		logins, blocks}, err
}

// Revoked is the result of Access.Revoke and RevokeUser.
type Revoked struct {
	AccessList
	// Sessions is the number of sessions in the console that have ended.
	Sessions int64 `json:"sessions"`
	// Remaining are tokens of the user in the configuration, which are still valid.
	Remaining []console.TokenItem `json:"remaining"`
}

// Record records an operation before it is performed, and with its outcome.
type Record func(o *audit.Operation, do func() error) error

// Revoke revokes the token with this name or ID, or ends the login with this ID, for the operator by. It fails with
// bearer.ErrNone or an error that says where the token is configured.
func (a *Access) Revoke(ctx context.Context, which, by string, record Record) (*Revoked, error) {
	r := &Revoked{AccessList: AccessList{Tokens: []console.TokenItem{}, Logins: []*connection.Login{}},
		Remaining: []console.TokenItem{}}
	login, err := a.logins.Find(ctx, which)
	switch {
	case err == nil:
		o := &audit.Operation{Action: "login.end"}
		login.Describe(o)
		return r, record(o, func() error {
			ended, err := a.logins.End(ctx, which)
			r.Logins = append(r.Logins, ended)
			return err
		})
	case !errors.Is(err, connection.ErrNoLogin):
		return nil, err
	}
	err = record(&audit.Operation{Action: "token.revoke", Target: audit.Target{Name: which}}, func() error {
		token, err := a.Tokens.Revoke(ctx, which, by)
		if err == nil {
			r.Tokens = console.TokenItems([]*bearer.Record{token}, nil, time.Now())
		}
		return err
	})
	configured := func(t bearer.Token) bool { return t.Name == which }
	if errors.Is(err, bearer.ErrNone) && slices.ContainsFunc(ConfiguredTokens(a.config), configured) {
		return nil, fmt.Errorf("token %q is in the configuration: take it out of %s", which, a.config.Name())
	}
	return r, err
}

// RevokeUser revokes all tokens and ends all logins of a user, of one tenant or of all if tenant is empty. The console
// has no tenants, so the user's sessions there end only without a tenant. It fails if there is nothing to revoke.
func (a *Access) RevokeUser(ctx context.Context, user, tenant, by string, record Record) (*Revoked, error) {
	r := &Revoked{Remaining: a.configured(user, tenant)}
	o := &audit.Operation{Action: "user.revoke", Target: audit.Target{Name: user}, Detail: map[string]string{}}
	if tenant != "" {
		o.Detail["tenant"] = tenant
	}
	return r, record(o, func() error {
		tokens, tokenErr := a.Tokens.RevokeOf(ctx, user, tenant, by)
		logins, loginErr := a.logins.EndOf(ctx, user, tenant)
		var sessionErr error
		if tenant == "" {
			r.Sessions, sessionErr = console.EndSessions(ctx, a.store, user)
		}
		r.Tokens, r.Logins = console.TokenItems(tokens, nil, time.Now()), logins
		o.Detail["tokens"] = ids(r.Tokens, func(t console.TokenItem) string { return t.ID })
		o.Detail["logins"] = ids(r.Logins, func(l *connection.Login) string { return l.ID })
		o.Detail["sessions"] = strconv.FormatInt(r.Sessions, 10)
		err := errors.Join(tokenErr, loginErr, sessionErr)
		if err == nil && len(tokens)+len(logins) == 0 && r.Sessions == 0 {
			err = a.nothingOf(user, r.Remaining)
		}
		return err
	})
}

// configured returns the valid tokens of a user in the configuration, of one tenant or of all if tenant is empty.
func (a *Access) configured(user, tenant string) []console.TokenItem {
	items := console.TokenItems(nil, ConfiguredTokens(a.config), time.Now())
	return slices.DeleteFunc(items, func(t console.TokenItem) bool {
		return t.User != user || tenant != "" && t.Tenant != tenant || t.State != "valid"
	})
}

// nothingOf is the error for a user with nothing to revoke but the tokens of the configuration.
func (a *Access) nothingOf(user string, configured []console.TokenItem) error {
	if len(configured) > 0 {
		names := ids(configured, func(t console.TokenItem) string { return strconv.Quote(t.Name) })
		return fmt.Errorf("the tokens of %q are in the configuration (%s): take them out of %s", user, names,
			a.config.Name())
	}
	return fmt.Errorf("%q has no token, login or session that could be revoked: 'hako token list' shows who has", user)
}

// ids lists the IDs of items.
func ids[T any](items []T, id func(T) string) string {
	var list []string
	for _, item := range items {
		list = append(list, id(item))
	}
	return strings.Join(list, " ")
}
