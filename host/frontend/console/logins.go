package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
)

// Logins configures who may log in, and how.
type Logins struct {
	// Tokens are those of the configuration, which have a role. Issued has those in the store, and may be nil.
	Tokens []bearer.Token
	Issued *bearer.Issued
	// OIDC is an OpenID Connect provider. Nil means none.
	OIDC *OIDC
}

// logins are checked Logins.
type logins struct {
	tokens []bearer.Token
	issued *bearer.Issued
	oidc   *provider
}

// CheckToken returns an error for a token of the configuration that is not usable for the console.
func CheckToken(t *bearer.Token) error {
	if err := t.Check(); err != nil {
		return err
	}
	if !slices.Contains(Roles, Role(t.Role)) {
		return fmt.Errorf("token %q: unknown role %q: use viewer, approver or admin", t.Name, t.Role)
	}
	return nil
}

func newLogins(l Logins, s *site, now func() time.Time, logger *slog.Logger) (*logins, error) {
	checked := &logins{tokens: slices.Clone(l.Tokens), issued: l.Issued}
	names := map[string]bool{}
	for i := range checked.tokens {
		t := &checked.tokens[i]
		if err := CheckToken(t); err != nil {
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

// byText returns the valid token with this text, or nil. The error is the store's.
func (l *logins) byText(ctx context.Context, text string, now time.Time) (*bearer.Token, error) {
	if t := bearer.Find(l.tokens, text); t != nil && !t.Expired(now) {
		return t, nil
	}
	t, _, err := l.issued.Find(ctx, text)
	return t, err
}

// byHash returns the valid token with this hash, or nil.
func (l *logins) byHash(hash string, now time.Time) *bearer.Token {
	for i := range l.tokens {
		if t := &l.tokens[i]; t.Hash == hash && !t.Expired(now) {
			return t
		}
	}
	return l.issued.ByHash(hash, now)
}

// errNoLogin means that a login is no longer valid.
var errNoLogin = errors.New("the login is no longer valid")

// admit sets the person's role from the current configuration. It fails with errNoLogin if there is none.
func (l *logins) admit(p *Person, proof string, now time.Time) error {
	p.Role = nobody
	switch p.via {
	case viaToken:
		if t := l.byHash(proof, now); t != nil && t.Name == p.source && slices.Contains(Roles, Role(t.Role)) {
			p.Name, p.Role = t.Owner(), Role(t.Role)
		}
	case viaOIDC:
		if l.oidc != nil && l.oidc.options.Issuer == p.source && !l.issued.IsBlocked(p.source, p.Name) {
			p.Role = l.oidc.options.role(p.Name, p.Groups)
		}
	case viaLink:
		p.Role = Admin
	}
	if p.Role == nobody {
		return errNoLogin
	}
	return nil
}
