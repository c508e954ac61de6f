package console

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/hako-run/hako/host/credential"
)

// OIDC is a provider of identities (OpenID Connect Core 1.0), which people log in at with the authorization code flow, PKCE, state and nonce.
type OIDC struct {
	// Name is what the button says. Empty means the host of Issuer.
	Name string
	// Issuer is the provider's identifier, an https URL (http on this machine).
	Issuer string
	// ClientID and ClientSecret are the console's at the provider. A public client has no secret.
	ClientID     string
	ClientSecret credential.Source
	// Scopes are asked for besides "openid". Empty means "profile" and "email".
	Scopes []string
	// UserClaim says who somebody is, as the policy names people. Empty means "email". That has to be verified (email_verified),
	// for some providers let people write down any address.
	UserClaim string
	// GroupsClaim has the groups, a list of texts. Empty means "groups".
	GroupsClaim string
	// Roles are the groups and users that have each role. Who is in none may not log in.
	Roles map[Role][]string
	// Client asks the provider. Nil means one with a limit of 10 seconds and 1 MiB for each answer.
	Client *http.Client
}

const (
	defaultUserClaim   = "email"
	defaultGroupsClaim = "groups"
	// clockSkew is by how much the provider's clock may be ahead or behind.
	clockSkew = time.Minute
	// maxGroups bounds the groups that are kept for a person, maxName the length of the name of one and of a person, in bytes.
	maxGroups = 200
	maxName   = 256
	// callbackPath is where the provider sends people back to.
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

// role is the greatest one of a person; nobody if it has none.
func (o *OIDC) role(user string, groups []string) Role {
	for _, role := range slices.Backward(Roles) {
		if slices.ContainsFunc(o.Roles[role], func(name string) bool { return name == user || slices.Contains(groups, name) }) {
			return role
		}
	}
	return nobody
}

// Check returns what is wrong with the provider: an issuer to which nothing secret should go, no client, no roles.
func (o *OIDC) Check() error {
	issuer, err := url.Parse(o.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.Scheme != "https" && (issuer.Scheme != "http" || !isLoopback(hostname(issuer.Host))):
		return fmt.Errorf("the issuer %q must be an https URL", o.Issuer)
	case o.ClientID == "":
		return errors.New("the client ID is missing")
	case !slices.ContainsFunc(Roles, func(r Role) bool { return len(o.Roles[r]) > 0 }):
		return errors.New("no group and no user has a role, so that nobody could log in: name some in roles")
	}
	for role := range o.Roles {
		if !slices.Contains(Roles, role) {
			return fmt.Errorf("the role %q does not exist: there are viewer, approver and admin", role)
		}
	}
	return nil
}

// provider is an OIDC that has been checked. It is asked for its endpoints when somebody first logs in.
type provider struct {
	options  OIDC
	redirect string

	// mu guards what follows: the provider as it was found, or else when and why it was not.
	mu     sync.Mutex
	found  *oidc.Provider
	missed time.Time
	why    error
}

func newProvider(o OIDC, s *site) (*provider, error) {
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
		o.Client = &http.Client{Timeout: 10 * time.Second, Transport: boundedTransport{}}
	}
	return &provider{options: o, redirect: s.base.String() + callbackPath}, o.Check()
}

// maxAnswer bounds an answer of the provider, in bytes.
const maxAnswer = 1 << 20

// boundedTransport cuts answers off after maxAnswer.
type boundedTransport struct{}

func (boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// missedFor is for how long a provider that could not be reached is not tried again: anybody can ask to log in.
const missedFor = 5 * time.Second

// discover returns the provider's endpoints and keys, which are looked for until they have been found once.
func (p *provider) discover() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil || time.Since(p.missed) < missedFor {
		return p.found, p.why
	}
	// Keys are fetched with this context for as long as the process lives.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.options.Client), p.options.Issuer)
	p.found, p.why = found, nil
	if err != nil {
		p.found, p.missed, p.why = nil, time.Now(), fmt.Errorf("%w: %w", errProvider, err)
	}
	return p.found, p.why
}

var (
	// errProvider says that the provider cannot be reached.
	errProvider = errors.New("the provider of identities cannot be reached")
	// errIdentity says that what the provider gave proves nothing.
	errIdentity = errors.New("the identity is not proven")
	// errNoRole says that somebody is known but has no role.
	errNoRole = errors.New("no group of this person has a role in console.oidc.roles")
)

func (p *provider) config(ctx context.Context, found *oidc.Provider) (*oauth2.Config, error) {
	c := &oauth2.Config{
		ClientID: p.options.ClientID, Endpoint: found.Endpoint(), RedirectURL: p.redirect, Scopes: append([]string{oidc.ScopeOpenID}, p.options.Scopes...),
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

// identify exchanges the code and returns who has logged in. What it says of failures is for the log: it may quote the provider.
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
	verifier := found.Verifier(&oidc.Config{ClientID: p.options.ClientID, Now: func() time.Time { return now.Add(-clockSkew) }})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(f.Nonce)) {
		return nil, fmt.Errorf("%w: the nonce is another one", errIdentity)
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
		return nil, fmt.Errorf("%w: the token was made for another client (OpenID Connect Core 1.0, section 3.1.3.7)", errIdentity)
	}
	name, _ := claims[p.options.UserClaim].(string)
	switch {
	case name == "" || len(name) > maxName:
		return nil, fmt.Errorf("%w: the claim %s has no name of 1 to %d bytes", errIdentity, p.options.UserClaim, maxName)
	case p.options.UserClaim == defaultUserClaim && claims["email_verified"] != true && claims["email_verified"] != "true":
		return nil, fmt.Errorf("%w: the provider does not say that it has verified the address (email_verified): name another claim in console.oidc.userClaim", errIdentity)
	}
	person := &Person{Name: name, Groups: groupsOf(claims[p.options.GroupsClaim]), via: viaOIDC, source: p.options.Issuer}
	if person.Role = p.options.role(person.Name, person.Groups); person.Role == nobody {
		return person, errNoRole
	}
	return person, nil
}

// groupsOf reads a list of groups, or one group. Other kinds of values, and names that are too long, are left out.
func groupsOf(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	var groups []string
	for _, item := range list {
		if name, ok := item.(string); ok && name != "" && len(name) <= maxName && len(groups) < maxGroups {
			groups = append(groups, name)
		}
	}
	return groups
}

// belongs reports whether an answer of the provider belongs to the flow (RFC 6749, section 10.12, and RFC 9207).
func (f *flow) belongs(q *request, issuer string, now time.Time) bool {
	return f != nil && hmac.Equal([]byte(f.State), []byte(q.param("state"))) && now.Sub(time.Unix(f.Begun, 0)) < flowTime &&
		(q.param("iss") == "" || strings.TrimSuffix(q.param("iss"), "/") == strings.TrimSuffix(issuer, "/"))
}
