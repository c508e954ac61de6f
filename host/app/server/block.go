package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/console"
)

// Block refuses the tokens and logins of a user from one issuer of the configuration, or from all if issuer is empty.
// It fails for an issuer that is not configured.
func (a *Access) Block(ctx context.Context, user, issuer, by string, record Record) error {
	if user == "" {
		return errors.New("a user without a name cannot be blocked")
	}
	configured := issuers(a.config)
	if issuer != "" {
		if !slices.Contains(configured, issuer) {
			return fmt.Errorf("%q is not a configured issuer; configured are: %s", issuer,
				strings.Join(configured, ", "))
		}
		configured = []string{issuer}
	}
	if len(configured) == 0 {
		return fmt.Errorf(
			"no issuer is configured (http.auth, console.oidc): 'hako token revoke --user %s' revokes the "+
				"tokens of a user here", user)
	}
	return record(console.BlockOperation("user.block", user, configured), func() error {
		for _, issuer := range configured {
			if err := a.Tokens.Block(ctx, issuer, user, by); err != nil {
				return err
			}
		}
		return nil
	})
}

// Unblock undoes Block for one issuer, or for all if issuer is empty. It fails if the user is not blocked.
func (a *Access) Unblock(ctx context.Context, user, issuer string, record Record) error {
	blocks, err := a.Tokens.Blocks(ctx)
	if err != nil {
		return err
	}
	var list []string
	for _, b := range blocks {
		if b.User == user && (issuer == "" || b.Issuer == issuer) {
			list = append(list, b.Issuer)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("%q is not blocked: 'hako token list' shows who is", user)
	}
	return record(console.BlockOperation("user.unblock", user, list), func() error {
		for _, issuer := range list {
			if _, err := a.Tokens.Unblock(ctx, issuer, user); err != nil {
				return err
			}
		}
		return nil
	})
}

// issuers returns the issuers whose tokens open the endpoint, and the one with whose identities people log in to the
// console.
func issuers(c *config.Config) (list []string) {
	for _, i := range c.HTTP.OAuth.Issuers {
		list = append(list, i.URL)
	}
	if i := &c.HTTP.Introspection; i.URL != "" {
		list = append(list, cmp.Or(i.Issuer, i.URL))
	}
	if own := c.HTTP.AuthorizationServer(); own != nil {
		list = append(list, own.Provider.Issuer) // hako's own server has the users of its identity provider
	}
	if c.Console.OIDC.Issuer != "" {
		list = append(list, c.Console.OIDC.Issuer)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
