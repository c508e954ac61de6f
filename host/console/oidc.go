package console

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/internal/issuer"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/address"
)

// OIDC configures an OpenID Connect provider (Core 1.0), with the authorization code flow, PKCE, state and nonce.
type OIDC struct {
	// Name is the text of the button. Empty means the host of Issuer.
	Name string
	// Issuer is the provider's identifier, an https URL (http on this machine).
	Issuer string
	// ClientID and ClientSecret are those of the console. A public client has no secret.
	ClientID     string
	ClientSecret credential.Source
	// Scopes are requested besides "openid". Empty means "profile" and "email".
	Scopes []string
	// UserClaim has the user's name for policies. Empty means "email", which must be verified (email_verified), because
	// some providers let people enter any address.
	UserClaim string
	// GroupsClaim has the groups, a list of strings. Empty means "groups".
	GroupsClaim string
	// Roles has the people of each role. People without a role may not log in.
	Roles map[Role]policy.People
	// Proxy is a proxy for requests to the provider. Nil means none; the environment's proxies are ignored.
	Proxy *url.URL
	// Client replaces the client for these requests. Nil means one with a limit of 10 seconds and 1 MiB for each
	// response.
	Client *http.Client
}

const (
	defaultUserClaim   = "email"
	defaultGroupsClaim = "groups"
	// clockSkew is the tolerated difference of the provider's clock.
	clockSkew = time.Minute
	// maxGroups bounds the groups of a person.
	maxGroups = 200
	// callbackPath is the path of the redirect URI.
	callbackPath = Path + "api/oidc/callback"
)

func (o *OIDC) name() string {
	if o.Name != "" {
		return o.Name
	}
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return o.Issuer
	}
	return u.Host
}

// role returns the highest role of a person, or nobody.
func (o *OIDC) role(user string, groups []string) Role {
	for _, role := range slices.Backward(Roles) {
		if o.Roles[role].Has(user, groups) {
			return role
		}
	}
	return nobody
}

// Check returns an error for an issuer that secrets must not be sent to, a missing client or missing roles.
func (o *OIDC) Check() error {
	at, err := url.Parse(o.Issuer)
	switch {
	case err != nil || !address.IsConfidential(at):
		return fmt.Errorf("the issuer %q must be an https URL", o.Issuer)
	case o.ClientID == "":
		return errors.New("the client ID is missing")
	case !slices.ContainsFunc(Roles, func(r Role) bool { return !o.Roles[r].IsZero() }):
		return errors.New("no group and no user has a role, so that nobody could log in: name some in roles")
	}
	for role := range o.Roles {
		if !slices.Contains(Roles, role) {
			return fmt.Errorf("the role %q does not exist: there are viewer, approver and admin", role)
		}
	}
	return nil
}

// provider is a checked OIDC. It discovers its endpoints at the first login.
type provider struct {
	options  OIDC
	redirect string
	keys     *issuer.Keys

	// mu guards the fields below: the discovered provider, or when and why the discovery failed.
	mu     sync.Mutex
	found  *issuer.Discovery
	missed time.Time
	why    error
}

func newProvider(o OIDC, s *site, now func() time.Time, logger *slog.Logger) (*provider, error) {
	if o.UserClaim == "" {
		o.UserClaim = defaultUserClaim
	}
	if o.GroupsClaim == "" {
		o.GroupsClaim = defaultGroupsClaim
	}
	if len(o.Scopes) == 0 {
		o.Scopes = []string{"profile", "email"}
	}
	if o.Client == nil {
		o.Client = issuer.NewClient(o.Proxy)
	}
	// The client's secret and the trusted keys must not be redirected to other addresses than those that the provider
	// publishes.
	o.Client = issuer.WithoutRedirects(o.Client)
	p := &provider{options: o, redirect: s.base.String() + callbackPath}
	p.keys = issuer.NewKeys(issuer.Options{URL: o.Issuer, Client: o.Client, Now: now,
		Logger: func() *slog.Logger { return logger },
		Location: func(context.Context) (string, error) {
			found, err := p.discover()
			if err != nil {
				return "", err
			}
			return found.Keys, nil
		}})
	return p, o.Check()
}

// missedFor is how long a failed discovery is not repeated, because anybody can ask to log in.
const missedFor = 5 * time.Second

// discover returns the provider's endpoints and keys. It caches them after the first success.
func (p *provider) discover() (*issuer.Discovery, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil || time.Since(p.missed) < missedFor {
		return p.found, p.why
	}
	found, err := issuer.Discover(context.Background(), p.options.Client, p.options.Issuer)
	p.found, p.why = found, nil
	if err != nil {
		p.found, p.missed, p.why = nil, time.Now(), fmt.Errorf("%w: %w", errProvider, err)
	}
	return p.found, p.why
}

var (
	// errProvider says that the provider cannot be reached.
	errProvider = errors.New("the OpenID Connect provider cannot be reached")
	// errIdentity says that the provider's response proves no identity.
	errIdentity = errors.New("the identity is not proven")
	// errNoRole says that the person has no role.
	errNoRole = errors.New("no group of this person has a role in console.oidc.roles")
)

func (p *provider) config(ctx context.Context, found *issuer.Discovery) (*oauth2.Config, error) {
	c := &oauth2.Config{
		ClientID: p.options.ClientID, Endpoint: found.Endpoint(), RedirectURL: p.redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, p.options.Scopes...),
	}
	if p.options.ClientSecret.IsZero() {
		return c, nil
	}
	var err error
	if c.ClientSecret, err = p.options.ClientSecret.Read(ctx); err != nil {
		return nil, fmt.Errorf("console.oidc.clientSecret: %w", err)
	}
	return c, nil
}

// identify exchanges the code and returns the person. Its errors are for the log, because they may quote the provider.
func (p *provider) identify(ctx context.Context, code string, f *flow, now time.Time) (*Person, error) {
	found, err := p.discover()
	if err != nil {
		return nil, err
	}
	config, err := p.config(ctx, found)
	if err != nil {
		return nil, err
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, p.options.Client), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	raw, _ := token.Extra("id_token").(string)
	if err := issuer.Check(raw, issuer.TypeJWT); err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	verifier := oidc.NewVerifier(p.options.Issuer, p.keys, &oidc.Config{
		ClientID: p.options.ClientID, SupportedSigningAlgs: issuer.Algorithms,
		Now: func() time.Time { return now.Add(-clockSkew) },
	})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	if id.IssuedAt.After(now.Add(clockSkew)) {
		return nil, fmt.Errorf("%w: the token was issued in the future", errIdentity)
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(f.Nonce)) {
		return nil, fmt.Errorf("%w: the nonce does not match", errIdentity)
	}
	return p.person(id)
}

// person reads the claims.
func (p *provider) person(id *oidc.IDToken) (*Person, error) {
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	if party, ok := claims["azp"]; (ok || len(id.Audience) > 1) && party != p.options.ClientID {
		return nil, fmt.Errorf("%w: the token was made for another client (OpenID Connect Core 1.0, section 3.1.3.7)",
			errIdentity)
	}
	if err := issuer.CheckIDToken(claims); err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	name, _ := claims[p.options.UserClaim].(string)
	problem := identity.Check(name)
	switch {
	case problem != nil:
		return nil, fmt.Errorf("%w: the claim %s: %w", errIdentity, p.options.UserClaim, problem)
	case p.options.UserClaim == defaultUserClaim && claims["email_verified"] != true &&
		claims["email_verified"] != "true":
		return nil, fmt.Errorf("%w: the provider does not say that it has verified the address (email_verified): name another claim in console.oidc.userClaim", errIdentity)
	}
	person := &Person{Name: name, Groups: groupsOf(claims[p.options.GroupsClaim]), via: viaOIDC,
		source: p.options.Issuer}
	if person.Role = p.options.role(person.Name, person.Groups); person.Role == nobody {
		return person, errNoRole
	}
	return person, nil
}

// groupsOf returns a claim's groups, a list or one string. Values that are no names are dropped.
func groupsOf(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	var groups []string
	for _, item := range list {
		if name, ok := item.(string); ok && identity.Check(name) == nil && len(groups) < maxGroups {
			groups = append(groups, name)
		}
	}
	return groups
}

// belongs reports whether a response of the provider belongs to the flow (RFC 6749, section 10.12, and RFC 9207).
func (f *flow) belongs(q *request, issuer string, now time.Time) bool {
	return f != nil && hmac.Equal([]byte(f.State), []byte(q.param("state"))) &&
		now.Sub(time.Unix(f.Begun, 0)) < flowTime &&
		(q.param("iss") == "" || strings.TrimSuffix(q.param("iss"), "/") == strings.TrimSuffix(issuer, "/"))
}
