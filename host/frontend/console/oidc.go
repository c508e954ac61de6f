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
	"time"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/secret"
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
	ClientSecret secret.Source
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
	defaultGroupsClaim = "groups"
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
		return errors.New("no group and no user has a role, so nobody could log in: add some to roles")
	}
	for role := range o.Roles {
		if !slices.Contains(Roles, role) {
			return fmt.Errorf("unknown role %q: use viewer, approver or admin", role)
		}
	}
	return nil
}

// provider is a checked OIDC.
type provider struct {
	options OIDC
	client  *issuer.LoginClient
}

func newProvider(o OIDC, s *site, now func() time.Time, logger *slog.Logger) (*provider, error) {
	if o.UserClaim == "" {
		o.UserClaim = issuer.EmailClaim
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
	login := issuer.LoginOptions{Issuer: o.Issuer, ID: o.ClientID, Scopes: o.Scopes,
		Redirect: s.base.String() + callbackPath, HTTP: o.Client, Now: now, Logger: logger}
	if !o.ClientSecret.IsZero() {
		login.Secret = o.ClientSecret.Read
	}
	return &provider{o, issuer.NewLoginClient(login)}, o.Check()
}

var (
	// errNoRole means that the person has no role.
	errNoRole = errors.New("no group of this person has a role in console.oidc.roles")
	// errBlocked means that an operator has blocked the person.
	errBlocked = errors.New("this person is blocked (hako token block)")
)

// identify exchanges the code and returns the person. Its errors are for the log, because they may quote the provider.
func (p *provider) identify(ctx context.Context, code string, f *flow) (*Person, error) {
	claims, err := p.client.Finish(ctx, code, f.Login)
	if err != nil {
		return nil, err
	}
	return p.person(claims)
}

// person reads the claims.
func (p *provider) person(claims map[string]any) (*Person, error) {
	name, err := issuer.User(claims, p.options.UserClaim)
	if err != nil {
		return nil, err
	}
	person := &Person{Name: name, Groups: identity.Groups(claims[p.options.GroupsClaim]), via: viaOIDC,
		source: p.options.Issuer}
	if person.Role = p.options.role(person.Name, person.Groups); person.Role == nobody {
		return person, errNoRole
	}
	return person, nil
}

// belongs reports whether a response of the provider belongs to the flow (RFC 6749, section 10.12, and RFC 9207).
func (f *flow) belongs(q *request, issuer string, now time.Time) bool {
	return f != nil && hmac.Equal([]byte(f.State), []byte(q.param("state"))) &&
		now.Sub(time.Unix(f.Begun, 0)) < flowTime &&
		(q.param("iss") == "" || strings.TrimSuffix(q.param("iss"), "/") == strings.TrimSuffix(issuer, "/"))
}
