package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// OAuth makes the endpoint an OAuth 2.1 resource server: it takes access tokens that are JWTs (RFC 9068 and alike), signed by
// one of the issuers with an asymmetric algorithm, for this resource, and not expired.
type OAuth struct {
	// Resource is the endpoint's public URL, such as "https://hako.example.com/mcp": what RFC 8707 calls the resource.
	Resource string
	// Audience is what tokens must have among their audiences. Empty means Resource.
	Audience string
	// Issuers are the authorization servers. At least one is needed.
	Issuers []Issuer
	// UserClaim and TenantClaim name the claims that hold who is meant. Empty means "sub", and no tenant.
	UserClaim, TenantClaim string
	// Client sends requests to the issuers. Nil means one with a timeout of 10 s.
	Client *http.Client
}

// Issuer is one authorization server.
type Issuer struct {
	// URL is the issuer as its tokens name it, to the letter.
	URL string
	// Keys is where its JSON Web Key Set is. Empty means where its OpenID Connect discovery document says.
	Keys string
}

// Algorithms that tokens may be signed with: asymmetric ones only, or knowing the public key would be enough to sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

type oauthVerifier struct {
	options     OAuth
	resource    string
	metadataURL string
	issuers     []*issuer
}

func newOAuthVerifier(options *OAuth, now func() time.Time) (*oauthVerifier, error) {
	v := &oauthVerifier{options: *options, resource: options.Resource}
	resource, err := url.Parse(options.Resource)
	if err != nil || !isSecure(resource) || resource.RawQuery != "" || resource.Fragment != "" {
		return nil, fmt.Errorf("mcp server: OAuth resource %q is not an https URL without query: give the endpoint's public one", options.Resource)
	}
	v.metadataURL = metadataURL(resource)
	if v.options.Audience == "" {
		v.options.Audience = options.Resource
	}
	if v.options.UserClaim == "" {
		v.options.UserClaim = "sub"
	}
	if len(options.Issuers) == 0 {
		return nil, fmt.Errorf("mcp server: OAuth needs at least one issuer")
	}
	client := http.Client{Timeout: 10 * time.Second}
	if options.Client != nil {
		client = *options.Client
	}
	for _, configured := range options.Issuers {
		issuer, err := newIssuer(configured, client, v.options.Audience)
		if err != nil {
			return nil, err
		}
		issuer.now = now
		v.issuers = append(v.issuers, issuer)
	}
	return v, nil
}

// isSecure reports whether u is https, or http to this machine.
func isSecure(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(hostname(u.Host)))
}

func (v *oauthVerifier) issuerURLs() []string {
	var urls []string
	for _, issuer := range v.issuers {
		urls = append(urls, issuer.url)
	}
	return urls
}

func (v *oauthVerifier) verify(ctx context.Context, token string) (*Identity, error) {
	name := unverifiedIssuer(token)
	for _, issuer := range v.issuers {
		if issuer.url == name {
			return v.identify(ctx, issuer, token)
		}
	}
	return nil, errInvalidToken
}

// unverifiedIssuer reads who claims to have issued a token, to know whose keys to check that with.
func unverifiedIssuer(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	return claims.Issuer
}

func (v *oauthVerifier) identify(ctx context.Context, issuer *issuer, token string) (*Identity, error) {
	verified, err := issuer.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, errInvalidToken
	}
	identity := &Identity{Expires: verified.Expiry, Scopes: scopes(claims), issuer: issuer.url}
	identity.User, _ = claims[v.options.UserClaim].(string)
	if v.options.TenantClaim != "" {
		identity.Tenant, _ = claims[v.options.TenantClaim].(string)
		if identity.Tenant == "" {
			return nil, errInvalidToken
		}
	}
	if identity.User == "" {
		return nil, errInvalidToken
	}
	return identity, nil
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

// issuer verifies the tokens of one authorization server. Its keys are fetched at the first token, and again when one is signed
// with a key that is not among them.
type issuer struct {
	url, keys string
	audience  string
	client    *http.Client
	now       func() time.Time

	// mu guards verifier, which is nil until discovery has succeeded.
	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
}

func newIssuer(configured Issuer, client http.Client, audience string) (*issuer, error) {
	for _, text := range []string{configured.URL, configured.Keys} {
		if parsed, err := url.Parse(text); text != "" && (err != nil || !isSecure(parsed)) {
			return nil, fmt.Errorf("mcp server: OAuth issuer %q: %q is not an https URL", configured.URL, text)
		}
	}
	if configured.URL == "" {
		return nil, fmt.Errorf("mcp server: an OAuth issuer has no URL")
	}
	client.Transport = &sparing{inner: client.Transport, answers: map[string]*answer{}}
	return &issuer{url: configured.URL, keys: configured.Keys, audience: audience, client: &client}, nil
}

func (i *issuer) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	ctx = oidc.ClientContext(ctx, i.client)
	verifier, err := i.ready(ctx)
	if err != nil {
		return nil, errUnavailable
	}
	unavailable := false
	verified, err := verifier.Verify(context.WithValue(ctx, unavailableKey{}, &unavailable), token)
	switch {
	case unavailable:
		return nil, errUnavailable
	case err != nil:
		return nil, errInvalidToken
	}
	return verified, nil
}

func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	keys := i.keys
	if keys == "" {
		provider, err := oidc.NewProvider(ctx, i.url)
		if err != nil {
			return nil, err
		}
		var discovered struct {
			Keys string `json:"jwks_uri"`
		}
		if err := provider.Claims(&discovered); err != nil {
			return nil, err
		}
		if location, err := url.Parse(discovered.Keys); err != nil || !isSecure(location) {
			return nil, fmt.Errorf("issuer %s: its key set is at no https URL", i.url)
		}
		keys = discovered.Keys
	}
	set := &keySet{oidc.NewRemoteKeySet(ctx, keys)}
	i.verifier = oidc.NewVerifier(i.url, set, &oidc.Config{ClientID: i.audience, SupportedSigningAlgs: algorithms, Now: i.now})
	return i.verifier, nil
}
