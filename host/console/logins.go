package console

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Logins configures who may log in, and how.
type Logins struct {
	Tokens []Token
	// OIDC is an OpenID Connect provider. Nil means none.
	OIDC *OIDC
	// Links allows one-time links (NewLink), which require a loopback address of the console.
	Links bool
}

// logins are checked Logins.
type logins struct {
	tokens []Token
	oidc   *provider
	links  bool
}

func newLogins(l Logins, s *site, now func() time.Time, logger *slog.Logger) (*logins, error) {
	checked := &logins{tokens: slices.Clone(l.Tokens), links: l.Links}
	names := map[string]bool{}
	for i := range checked.tokens {
		t := &checked.tokens[i]
		if err := t.Check(); err != nil {
			return nil, err
		}
		if names[t.Name] {
			return nil, fmt.Errorf("two tokens have the name %q: give each its own", t.Name)
		}
		names[t.Name] = true
	}
	if l.OIDC != nil {
		var err error
		if checked.oidc, err = newProvider(*l.OIDC, s, now, logger); err != nil {
			return nil, fmt.Errorf("oidc: %w", err)
		}
	}
	return checked, nil
}

// Kinds of logins.
const (
	viaToken = "token"
	viaOIDC  = "oidc"
	viaLink  = "link"
)

// Person is a person who is logged in.
type Person struct {
	// Name is the user in policies and the audit log.
	Name string
	Role Role
	// Groups are the groups according to the provider.
	Groups []string
	// via is the kind of login. source is the name of the token, or the issuer.
	via, source string
}

// token returns the name of the token that the person has logged in with, or "".
func (p *Person) token() string {
	if p.via == viaToken {
		return p.source
	}
	return ""
}

// errNoLogin says that a login is no longer valid.
var errNoLogin = errors.New("the login is no longer valid")

// admit sets the person's role from the current configuration. It fails with errNoLogin if there is none.
func (l *logins) admit(p *Person, proof string, now time.Time) error {
	p.Role = nobody
	switch p.via {
	case viaToken:
		for i := range l.tokens {
			if t := &l.tokens[i]; t.Name == p.source && t.Hash == proof && !t.expired(now) {
				p.Name, p.Role = t.user(), t.Role
			}
		}
	case viaOIDC:
		if l.oidc != nil && l.oidc.options.Issuer == p.source {
			p.Role = l.oidc.options.role(p.Name, p.Groups)
		}
	case viaLink:
		if l.links {
			p.Role = Admin
		}
	}
	if p.Role == nobody {
		return errNoLogin
	}
	return nil
}
