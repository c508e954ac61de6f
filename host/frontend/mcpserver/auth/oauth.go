package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/hako-run/hako/host/frontend/issuer"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/internal/address"
)

// OAuth makes the endpoint an OAuth 2.1 resource server: it takes access tokens that are JWTs (RFC 9068 and alike),
// signed by one of the issuers with an asymmetric algorithm, for this resource, and not expired.
type OAuth struct {
	// Resource is the endpoint's public URL, such as "https://hako.example.com/mcp": what RFC 8707 calls the resource.
	Resource string
	// Audience must be among the audiences of a token. Empty means Resource.
	Audience string
	// Issuers are the authorization servers, and Server is hako's own. At least one is needed.
	Issuers []Issuer
	Server  AuthorizationServer
	// Introspection is for tokens that are no JWTs. It may be nil.
	Introspection *Introspection
	// UserClaim and TenantClaim name the claims with user and tenant. Empty means "sub", and no tenant.
	UserClaim, TenantClaim string
	// GroupsClaim names the claim with the user's groups, a list of strings. Empty means that tokens bring no groups.
	GroupsClaim string
	// Strict takes tokens of the type at+jwt alone (RFC 9068, section 2.1). Otherwise tokens without a type, and of the
	// type JWT, count too, unless they have a claim that only other kinds of tokens have.
	Strict bool
	// Proxy is an upstream proxy for requests to the issuers. Nil means none; the environment plays no part.
	Proxy *url.URL
	// Client sends those requests in its place. Nil means one with a timeout of 10 s.
	Client *http.Client
}

// Issuer is one authorization server.
type Issuer struct {
	// URL is the issuer as its tokens name it, to the letter.
	URL string
	// Keys is the URL of its JSON Web Key Set. Empty means the URL in its OpenID Connect discovery document.
	Keys string
}

// AuthorizationServer issues tokens for the endpoint and verifies them.
type AuthorizationServer interface {
	// Issuer is the issuer identifier.
	Issuer() string
	// Owns reports whether a token has the form of the server's own.
	Owns(token string) bool
	// Verify returns the identity of a token, or nil if it is not valid. An error means that it cannot be verified now.
	Verify(ctx context.Context, token string) (*Identity, error)
}

type oauthVerifier struct {
	options     OAuth
	resource    string
	metadataURL string
	issuers     []*trusted
	// introspection may be nil.
	introspection *introspector
	now           func() time.Time
	types         []string
}

func newOAuthVerifier(options *OAuth, now func() time.Time, logger *slog.Logger) (*oauthVerifier, error) {
	v := &oauthVerifier{
		options:  *options,
		resource: options.Resource,
		now:      now,
		types:    []string{issuer.TypeAccessToken},
	}
	if !options.Strict {
		v.types = append(v.types, issuer.TypeJWT)
	}
	resource, err := url.Parse(options.Resource)
	if err != nil || !address.IsConfidential(resource) || resource.RawQuery != "" || resource.Fragment != "" {
		return nil, fmt.Errorf(
			"mcp server: OAuth resource %q is not an https URL without query: give the endpoint's public one",
			options.Resource,
		)
	}
	v.metadataURL = metadataURL(resource)
	if v.options.Audience == "" {
		v.options.Audience = options.Resource
	}
	if v.options.UserClaim == "" {
		v.options.UserClaim = "sub"
	}
	if len(options.Issuers) == 0 && options.Server == nil && options.Introspection == nil {
		return nil, fmt.Errorf("mcp server: OAuth needs at least one issuer")
	}
	client := options.Client
	if client == nil {
		client = issuer.NewClient(options.Proxy)
	}
	if options.Introspection != nil {
		if v.introspection, err = newIntrospector(options.Introspection, client, now, logger); err != nil {
			return nil, err
		}
	}
	for _, configured := range options.Issuers {
		trusted, err := newTrusted(configured, client, v.options.Audience, now, logger)
		if err != nil {
			return nil, err
		}
		v.issuers = append(v.issuers, trusted)
	}
	return v, nil
}

func (v *oauthVerifier) issuerURLs() []string {
	var urls []string
	if v.options.Server != nil {
		urls = append(urls, v.options.Server.Issuer())
	}
	for _, trusted := range v.issuers {
		urls = append(urls, trusted.url)
	}
	if i := v.introspection; i != nil && i.options.Issuer != i.options.URL && !slices.Contains(urls, i.options.Issuer) {
		urls = append(urls, i.options.Issuer)
	}
	return urls
}

func (v *oauthVerifier) verify(ctx context.Context, token string) (*Identity, error) {
	if server := v.options.Server; server != nil && server.Owns(token) {
		by, err := server.Verify(ctx, token)
		switch {
		case err != nil:
			return nil, ErrUnavailable
		case by == nil:
			return nil, errInvalidToken
		}
		return by, nil
	}
	if v.introspection != nil && (strings.Count(token, ".") != 2 || len(v.issuers) == 0) {
		return v.introspect(ctx, token)
	}
	// The issuer decides whose keys verify the token.
	var claimed struct {
		Issuer string `json:"iss"`
	}
	if issuer.Check(token, v.types...) != nil || !UnverifiedClaims(token, &claimed) {
		return nil, errInvalidToken
	}
	for _, trusted := range v.issuers {
		if trusted.url == claimed.Issuer {
			return v.identify(ctx, trusted, token)
		}
	}
	return nil, errInvalidToken
}

// UnverifiedClaims decodes the claims of a JWT into v. It does not verify the token, and reports false if it is no JWT.
func UnverifiedClaims(token string, v any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(payload, v) == nil
}

// clockSkew is by how much an issuer's clock may be ahead.
const clockSkew = time.Minute

func (v *oauthVerifier) identify(ctx context.Context, trusted *trusted, token string) (*Identity, error) {
	verified, err := trusted.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, errInvalidToken
	}
	if issuer.CheckAccessToken(claims) != nil || verified.IssuedAt.After(v.now().Add(clockSkew)) {
		return nil, errInvalidToken
	}
	return v.person(claims, trusted.url, verified.Expiry)
}

// person returns whom verified claims name.
func (v *oauthVerifier) person(claims map[string]any, issuer string, expires time.Time) (*Identity, error) {
	by := &Identity{Expires: expires, Scopes: scopes(claims), Issuer: issuer}
	by.User, _ = claims[v.options.UserClaim].(string)
	if identity.Check(by.User) != nil {
		return nil, errInvalidToken
	}
	if v.options.TenantClaim != "" {
		by.Tenant, _ = claims[v.options.TenantClaim].(string)
		if identity.Check(by.Tenant) != nil {
			return nil, errInvalidToken
		}
	}
	if v.options.GroupsClaim != "" {
		by.Groups = identity.Groups(claims[v.options.GroupsClaim])
	}
	return by, nil
}

// scopes reads "scope" (RFC 9068, section 2.2.3) or what some issuers have for it, "scp".
func scopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		switch claim := claims[name].(type) {
		case string:
			return strings.Fields(claim)
		case []any:
			var list []string
			for _, entry := range claim {
				if scope, ok := entry.(string); ok {
					list = append(list, scope)
				}
			}
			return list
		}
	}
	return nil
}

// trusted verifies the tokens of one authorization server.
type trusted struct {
	url      string
	verifier *oidc.IDTokenVerifier
}

func newTrusted(
	configured Issuer, client *http.Client, audience string, now func() time.Time, logger *slog.Logger,
) (*trusted, error) {
	for _, text := range []string{configured.URL, configured.Keys} {
		if parsed, err := url.Parse(text); text != "" && (err != nil || !address.IsConfidential(parsed)) {
			return nil, fmt.Errorf("mcp server: OAuth issuer %q: %q is not an https URL", configured.URL, text)
		}
	}
	if configured.URL == "" {
		return nil, fmt.Errorf("mcp server: an OAuth issuer has no URL")
	}
	keys := issuer.NewKeys(issuer.Options{URL: configured.URL, Client: client, Now: now, Logger: logger,
		Location: func(ctx context.Context) (string, error) {
			if configured.Keys != "" {
				return configured.Keys, nil
			}
			found, err := issuer.Discover(ctx, client, configured.URL)
			if err != nil {
				return "", err
			}
			return found.Keys, nil
		}})
	config := &oidc.Config{ClientID: audience, SupportedSigningAlgs: issuer.Algorithms, Now: now}
	return &trusted{configured.URL, oidc.NewVerifier(configured.URL, &keySet{keys}, config)}, nil
}

func (t *trusted) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	unavailable := false
	verified, err := t.verifier.Verify(context.WithValue(ctx, unavailableKey{}, &unavailable), token)
	switch {
	case unavailable:
		return nil, ErrUnavailable
	case err != nil:
		return nil, errInvalidToken
	}
	return verified, nil
}

type unavailableKey struct{}

// keySet reports to the caller, through the context, that a token could not be checked at all: the verifier hides that
// from it.
type keySet struct{ inner oidc.KeySet }

func (k *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.inner.VerifySignature(ctx, jwt)
	if unavailable, ok := ctx.Value(unavailableKey{}).(*bool); ok {
		*unavailable = errors.Is(err, issuer.ErrUnavailable)
	}
	return payload, err
}
