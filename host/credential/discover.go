package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/clip"
)

// party is an OAuth client at an authorization server: as configured, or for MCP as discovered and registered. It is
// stored encrypted with the connection.
type party struct {
	// Issuer is the authorization server's identifier (RFC 8414); empty if it was not discovered. Named reports whether
	// its responses carry it (RFC 9207).
	Issuer string `json:"issuer,omitempty"`
	Named  bool   `json:"named,omitempty"`

	AuthorizeURL string `json:"authorizeUrl,omitempty"`
	TokenURL     string `json:"tokenUrl"`
	ClientID     string `json:"clientId"`
	// ClientSecret is a secret from the registration. A configured secret is read from its source instead.
	ClientSecret string   `json:"clientSecret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	// Resource is the resource of the tokens (RFC 8707).
	Resource string `json:"resource,omitempty"`
}

// party returns the configured client.
func (c *connection) party() *party {
	return &party{AuthorizeURL: c.spec.AuthorizeURL, TokenURL: c.spec.TokenURL,
		ClientID: c.spec.ClientID, Scopes: c.spec.Scopes}
}

// partyOf returns the client that r was connected with.
func (c *connection) partyOf(r *record) *party {
	if r.Party != nil {
		return r.Party
	}
	return c.party()
}

// discoverTime is the timeout for discovering an authorization server and registering there.
const discoverTime = 30 * time.Second

// discover finds the authorization server of an MCP server (RFC 9728, RFC 8414) and registers there if no client ID is
// configured (RFC 7591).
func (c *connection) discover(ctx context.Context, redirect string) (*party, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	challenges, err := c.fetchChallenges(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", c.spec.Resource, cause.WithoutURL(err))
	}
	about, err := c.fetchResourceMetadata(ctx, challenges)
	if err != nil {
		return nil, err
	}
	if len(about.AuthorizationServers) == 0 {
		return nil, fmt.Errorf("%s names no authorization server: use a token, or the provider %s with the "+
			"addresses in its documentation", c.spec.Resource, OAuth2)
	}
	server, err := c.fetchServerMetadata(ctx, about.AuthorizationServers)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: use the provider %s with the addresses in its documentation", err, OAuth2)
	case !slices.Contains(server.CodeChallengeMethodsSupported, "S256"):
		return nil, fmt.Errorf("the authorization server %s does not support PKCE with S256, without which a code "+
			"can be stolen", server.Issuer)
	}
	p := &party{
		Issuer: server.Issuer, Named: server.AuthorizationResponseIssParameterSupported,
		AuthorizeURL: server.AuthorizationEndpoint, TokenURL: server.TokenEndpoint, ClientID: c.spec.ClientID,
		Scopes: selectScopes(c.spec.Scopes, challenges, about, server), Resource: about.Resource,
	}
	if err := (Spec{AuthorizeURL: p.AuthorizeURL, TokenURL: p.TokenURL,
		DeviceURL: server.RegistrationEndpoint}).checkAddresses(); err != nil {
		return nil, fmt.Errorf("the authorization server %s: %w", server.Issuer, err)
	}
	if p.ClientID == "" {
		err = c.register(ctx, p, server, redirect)
	}
	return p, err
}

// fetchChallenges returns the challenges in the response to a request without a token, if there are any.
func (c *connection) fetchChallenges(ctx context.Context) ([]oauthex.Challenge, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.spec.Resource, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.broker.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, nil // the well-known addresses remain
	}
	return challenges, nil
}

// fetchResourceMetadata requests the server's metadata from the addresses in its challenges, and from the well-known
// ones (RFC 9728, section 3.1). The metadata may describe a path above the server, or its whole origin. A server without
// them is as in MCP 2025-03-26: its origin is the authorization server, if that has metadata.
func (c *connection) fetchResourceMetadata(ctx context.Context,
	challenges []oauthex.Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(c.spec.Resource)
	if err != nil {
		return nil, err
	}
	origin := u.Scheme + "://" + u.Host
	known := origin + "/.well-known/oauth-protected-resource"
	var places []string
	for _, challenge := range challenges {
		if place := challenge.Params["resource_metadata"]; place != "" && len(places) < maxRedirects {
			places = append(places, place)
		}
	}
	places = append(places, known+strings.TrimSuffix(u.EscapedPath(), "/"), known)
	about, err := search(ctx, c, unique(places), func(m *oauthex.ProtectedResourceMetadata) error {
		if !describes(m.Resource, c.spec.Resource) {
			return fmt.Errorf("it describes the resource %q", clip.Runes(m.Resource, 100))
		}
		return nil
	})
	if err == nil {
		return about, nil
	}
	if _, absent := errors.AsType[*absentError](err); absent {
		if _, none := c.fetchServerMetadata(ctx, []string{origin}); none == nil {
			return &oauthex.ProtectedResourceMetadata{Resource: c.spec.Resource,
				AuthorizationServers: []string{origin}}, nil
		}
	}
	return nil, fmt.Errorf("%s does not name its authorization server (RFC 9728): %w", c.spec.Resource, err)
}

// unique removes repeated addresses, and keeps the order.
func unique(places []string) (list []string) {
	for _, place := range places {
		if !slices.Contains(list, place) {
			list = append(list, place)
		}
	}
	return list
}

// selectScopes returns the configured scopes, or else those that the server requests, and the scope for refresh tokens
// if it exists.
func selectScopes(configured []string, challenges []oauthex.Challenge, about *oauthex.ProtectedResourceMetadata,
	server *oauthex.AuthServerMeta) []string {
	if len(configured) > 0 {
		return configured
	}
	scopes := about.ScopesSupported
	for _, challenge := range challenges {
		if asked := strings.Fields(challenge.Params["scope"]); len(asked) > 0 {
			scopes = asked
		}
	}
	const offline = "offline_access"
	if slices.Contains(server.ScopesSupported, offline) && !slices.Contains(scopes, offline) {
		scopes = append(slices.Clone(scopes), offline)
	}
	return scopes
}

// register registers hako at the authorization server.
func (c *connection) register(ctx context.Context, p *party, server *oauthex.AuthServerMeta, redirect string) error {
	if server.RegistrationEndpoint == "" {
		return fmt.Errorf("%s does not support client registration: register hako there by hand, and set "+
			"credentials.%s.clientId", p.Issuer, c.id.name)
	}
	method := "none"
	if supported := server.TokenEndpointAuthMethodsSupported; len(supported) > 0 &&
		!slices.Contains(supported, method) {
		method = "client_secret_post"
	}
	registered, err := oauthex.RegisterClient(ctx, server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "hako", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method,
		ApplicationType: "native",
		GrantTypes:      []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		Scope: strings.Join(p.Scopes, " "),
	}, c.broker.client)
	var refused *oauthex.ClientRegistrationError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s refuses to register hako: %s: register it by hand, and set credentials.%s.clientId",
			p.Issuer, clean(cmp.Or(refused.ErrorDescription, refused.ErrorCode), nil), c.id.name)
	case err != nil:
		return fmt.Errorf("%s refuses to register hako: register it by hand, and set credentials.%s.clientId",
			p.Issuer, c.id.name)
	}
	p.ClientID, p.ClientSecret = registered.ClientID, registered.ClientSecret
	return nil
}

// checkIssuer checks that a response is from the authorization server that was asked (RFC 9207).
func (p *party) checkIssuer(answer url.Values) error {
	if issuer := answer.Get("iss"); p.Issuer != "" && !isSameURL(issuer, p.Issuer) && (issuer != "" || p.Named) {
		return errState
	}
	return nil
}
