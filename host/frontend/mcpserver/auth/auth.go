// Package auth decides who may use the HTTP endpoint of the MCP server.
//
// A Guard checks the Host and Origin headers of a request, which keeps web pages from using the endpoint through a
// visitor's browser. An Auth checks its bearer token (package bearer), or the access token of an OAuth 2.1
// authorization server (OAuth), and returns the Identity that it proves. CheckExposure refuses addresses that others
// can reach without either.
package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/identity"
)

// Identity is the person or program that a verified token speaks for.
type Identity struct {
	// User names the user within Tenant, which may be empty.
	User, Tenant string
	// Token is the name of a token of package bearer, and empty for others.
	Token string
	// Revoked ends when the token is revoked, or may have been because a user of an issuer was blocked. Nil means that
	// nothing says so.
	Revoked context.Context
	// Groups are the user's groups, according to the issuer.
	Groups []string
	// Scopes are the scopes of the token.
	Scopes []string
	// Expires is the time at which the token stops being valid; zero means never.
	Expires time.Time
	// Issuer keeps apart users of the same name from different issuers. It is empty for tokens of package bearer.
	Issuer string
}

// Key is unique to the user.
func (i *Identity) Key() string {
	return identity.Key(i.Issuer, i.Tenant, i.User)
}

// CanStepUp reports whether the client can get a token with more scopes: from an authorization server (MCP,
// authorization, step-up). i may be nil.
func (i *Identity) CanStepUp() bool { return i != nil && i.Issuer != "" }

// Options lists the tokens that the HTTP endpoint accepts. At least one of Tokens, OAuth and Required is needed.
type Options struct {
	// Tokens are the tokens of the configuration.
	Tokens []bearer.Token
	// Issued has those in the store. It may be nil.
	Issued *bearer.Issued
	// Required reports whether a token is needed even if there is no other than those in the store.
	Required bool
	// OAuth accepts access tokens of authorization servers. It may be nil.
	OAuth *OAuth
	// Scopes are needed by every token. They may be empty.
	Scopes []string
	// Now is the clock that tokens expire by. Nil means time.Now.
	Now func() time.Time
	// Logger receives failures of issuers. Nil discards them.
	Logger *slog.Logger
}

// Auth decides who may use the HTTP endpoint. It is safe for concurrent use.
type Auth struct {
	tokens []bearer.Token
	issued *bearer.Issued
	oauth  *oauthVerifier
	scopes []string
	now    func() time.Time
}

// Now is the time that tokens expire by.
func (a *Auth) Now() time.Time { return a.now() }

// New returns an Auth. It fails if the options name no token at all, or if one of them is malformed; it does not talk
// to authorization servers yet.
func New(options Options) (*Auth, error) {
	if len(options.Tokens) == 0 && options.OAuth == nil && !options.Required {
		return nil, errors.New(
			"mcp server: authentication needs a token or an OAuth issuer: make a token with 'hako token new', or set " +
				"http.auth.required and make one with 'hako token create'",
		)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Auth{tokens: slices.Clone(options.Tokens), issued: options.Issued, scopes: slices.Clone(options.Scopes),
		now: options.Now}
	for _, scope := range a.scopes {
		if !bearer.IsScope(scope) {
			return nil, fmt.Errorf("mcp server: %q is not an OAuth scope: scopes have no spaces, quotes or backslashes",
				scope)
		}
	}
	for i := range a.tokens {
		if err := a.tokens[i].Check(); err != nil {
			return nil, fmt.Errorf("mcp server: %w", err)
		}
	}
	if options.OAuth != nil {
		var err error
		if a.oauth, err = newOAuthVerifier(options.OAuth, options.Now, options.Logger); err != nil {
			return nil, err
		}
	}
	return a, nil
}

var (
	// ErrNoToken means that the request has no token, which is how clients find out that they need one.
	ErrNoToken = errors.New("no token")
	// ErrUnavailable means that a token cannot be verified at the moment.
	ErrUnavailable = errors.New("the issuer or the token store cannot be reached")

	errTokenInURL   = errors.New("the token is in the URL")
	errInvalidToken = errors.New("the token is not valid here")
	errExpired      = errors.New("the token has expired")
	errScope        = errors.New("the token lacks a scope")
	errBlocked      = errors.New("the user is blocked")
)

// Authenticate returns who sends the request, or nil if a is nil and anybody may. Otherwise it answers the request and
// returns an error, with the identity as far as it is proven; ErrUnavailable alone is left to the caller to answer. The
// answers and errors are fixed texts, because errors of the verification may have parts of the token.
func (a *Auth) Authenticate(w http.ResponseWriter, r *http.Request) (*Identity, error) {
	if a == nil {
		return nil, nil
	}
	if r.URL.Query().Has("access_token") {
		a.challenge(w, http.StatusBadRequest, "invalid_request",
			"Send the token in the Authorization header, never in the URL.")
		return nil, errTokenInURL
	}
	token, ok := bearerToken(r.Header)
	if !ok {
		// RFC 6750, section 3.1: no error code for a request without authentication.
		a.challenge(w, http.StatusUnauthorized, "", "This server needs a bearer token in the Authorization header.")
		return nil, ErrNoToken
	}
	identity, err := a.Verify(r.Context(), token)
	switch {
	case errors.Is(err, ErrUnavailable):
		return nil, err
	case errors.Is(err, errScope):
		a.challenge(w, http.StatusForbidden, "insufficient_scope", "The token lacks a scope that this server needs.")
	case err != nil:
		a.challenge(w, http.StatusUnauthorized, "invalid_token", "The token is not valid here, or has expired.")
	}
	return identity, err
}

// Verify returns whom a token speaks for. It fails with ErrUnavailable, or with a fixed text that says why the token is
// refused, and then the identity is what is proven of it, or nil.
func (a *Auth) Verify(ctx context.Context, token string) (*Identity, error) {
	by, err := a.verify(ctx, token)
	if err == nil && !containsAll(by.Scopes, a.scopes) {
		err = errScope
	}
	return by, err
}

func bearerToken(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// verify returns the identity of a token. With errExpired it returns the identity too.
func (a *Auth) verify(ctx context.Context, token string) (*Identity, error) {
	if t := bearer.Find(a.tokens, token); t != nil {
		if t.Expired(a.Now()) {
			return identityOf(t), errExpired
		}
		return identityOf(t), nil
	}
	t, revoked, err := a.issued.Find(ctx, token)
	if err != nil {
		return nil, ErrUnavailable
	}
	if t != nil && t.Role == "" { // others are for the console
		identity := identityOf(t)
		identity.Revoked = revoked
		return identity, nil
	}
	if a.oauth == nil || bearer.IsToken(token) { // it may be a console token, which other servers must not receive
		return nil, errInvalidToken
	}
	by, err := a.oauth.verify(ctx, token)
	if err != nil {
		return by, err
	}
	blocked, changed, err := a.issued.Blocked(ctx, by.Issuer, by.User)
	switch {
	case err != nil:
		return nil, ErrUnavailable
	case blocked:
		return by, errBlocked
	case changed != nil:
		by = by.until(changed)
	}
	return by, nil
}

// until returns the identity with another cause for its end. One of hako's own authorization server has Revoked already
// and is shared, and its login is ended with the user.
func (i *Identity) until(changed context.Context) *Identity {
	if i.Revoked != nil {
		return i
	}
	copied := *i
	copied.Revoked = changed
	return &copied
}

func identityOf(t *bearer.Token) *Identity {
	return &Identity{User: t.Owner(), Tenant: t.Tenant, Token: t.Name, Scopes: t.Scopes, Expires: t.Expires}
}

func containsAll(have, want []string) bool {
	for _, scope := range want {
		if !slices.Contains(have, scope) {
			return false
		}
	}
	return true
}

// RequestScopes sets the header of a 403 (Forbidden) that asks the client for a token with the missing scopes. It names
// those of the present token too, so that the client does not lose them.
func (a *Auth) RequestScopes(h http.Header, by *Identity, missing []string) {
	a.setChallenge(h, "insufficient_scope", "The token lacks a scope that this operation needs.",
		slices.DeleteFunc(slices.Concat(by.Scopes, missing), func(s string) bool { return !bearer.IsScope(s) }))
}

// challenge answers with RFC 6750's WWW-Authenticate, and RFC 9728's pointer to the metadata.
func (a *Auth) challenge(w http.ResponseWriter, status int, code, text string) {
	a.setChallenge(w.Header(), code, text, a.scopes)
	http.Error(w, text, status)
}

func (a *Auth) setChallenge(h http.Header, code, text string, scopes []string) {
	var parameters []string
	add := func(name, value string) {
		if value != "" {
			parameters = append(parameters, fmt.Sprintf("%s=%q", name, value))
		}
	}
	add("error", code)
	if code != "" {
		add("error_description", text)
	}
	add("scope", strings.Join(scopes, " "))
	if a.oauth != nil {
		add("resource_metadata", a.oauth.metadataURL)
	}
	h.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parameters, ", ")))
}

// MetadataPath is the path of a protected resource's metadata (RFC 9728, section 3); the resource's own path is
// appended.
const MetadataPath = "/.well-known/oauth-protected-resource"

// ServeMetadata serves the metadata of RFC 9728, section 2, which there is with OAuth. a may be nil.
func (a *Auth) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	if a == nil || a.oauth == nil {
		http.NotFound(w, r)
		return
	}
	data, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported,omitempty"`
	}{a.oauth.resource, a.oauth.issuerURLs(), []string{"header"}, a.scopes})
	if err != nil {
		http.Error(w, "The metadata cannot be encoded.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(data) // a client that has gone misses nothing
}

// metadataURL returns the URL of the metadata of a resource.
func metadataURL(resource *url.URL) string {
	location := *resource
	location.Path = MetadataPath + strings.TrimSuffix(resource.Path, "/")
	return location.String()
}
