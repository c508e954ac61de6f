package issuer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/hako-run/hako/host/identity"
)

const (
	// clockSkew is the tolerated difference of a provider's clock.
	clockSkew = time.Minute
	// missedFor is the pause after a failed discovery, because anybody can ask to log in.
	missedFor = 5 * time.Second
)

var (
	// ErrProvider means that the provider cannot be reached.
	ErrProvider = errors.New("the OpenID Connect provider cannot be reached")
	// ErrIdentity means that the provider's response proves no identity.
	ErrIdentity = errors.New("the identity is not proven")
)

// LoginOptions configures a LoginClient. All fields are needed, except that a nil Secret is for a public client.
type LoginOptions struct {
	// Issuer is the provider's identifier.
	Issuer string
	// ID and Secret identify the client at the provider.
	ID     string
	Secret func(context.Context) (string, error)
	// Scopes are requested besides "openid".
	Scopes []string
	// Redirect is the URI to which the provider sends people back.
	Redirect string
	// HTTP sends requests to the provider; see NewClient. Redirects are not followed.
	HTTP   *http.Client
	Now    func() time.Time
	Logger *slog.Logger
}

// LoginClient logs people in at an OpenID Connect provider (Core 1.0), with the authorization code flow, PKCE, state
// and nonce. It discovers the provider's endpoints at the first login. It is safe for concurrent use.
type LoginClient struct {
	options LoginOptions
	keys    *Keys

	// mu guards the fields below: the discovered provider, or when and why the discovery failed.
	mu     sync.Mutex
	found  *Discovery
	missed time.Time
	why    error
}

// NewLoginClient returns a LoginClient without contacting the provider.
func NewLoginClient(options LoginOptions) *LoginClient {
	// The client's secret and the trusted keys must not be redirected to other addresses than those that the provider
	// publishes.
	options.HTTP = WithoutRedirects(options.HTTP)
	c := &LoginClient{options: options}
	c.keys = NewKeys(Options{URL: options.Issuer, Client: options.HTTP, Now: options.Now,
		Logger: options.Logger,
		Location: func(context.Context) (string, error) {
			found, err := c.discover()
			if err != nil {
				return "", err
			}
			return found.Keys, nil
		}})
	return c
}

// discover returns the provider's endpoints and keys. It caches them after the first success.
func (c *LoginClient) discover() (*Discovery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil || time.Since(c.missed) < missedFor {
		return c.found, c.why
	}
	found, err := Discover(context.Background(), c.options.HTTP, c.options.Issuer)
	c.found, c.why = found, nil
	if err != nil {
		c.found, c.missed, c.why = nil, time.Now(), fmt.Errorf("%w: %w", ErrProvider, err)
	}
	return c.found, c.why
}

func (c *LoginClient) config(ctx context.Context) (*oauth2.Config, error) {
	found, err := c.discover()
	if err != nil {
		return nil, err
	}
	config := &oauth2.Config{
		ClientID: c.options.ID, Endpoint: found.Endpoint(), RedirectURL: c.options.Redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, c.options.Scopes...),
	}
	if c.options.Secret == nil {
		return config, nil
	}
	if config.ClientSecret, err = c.options.Secret(ctx); err != nil {
		return nil, fmt.Errorf("clientSecret: %w", err)
	}
	return config, nil
}

// Login is a login that has begun. Its values are secrets of the browser that began it.
type Login struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// NewLogin returns a Login of new random values.
func NewLogin() Login {
	return Login{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// Begin returns the URL at the provider where a person logs in. The error matches ErrProvider if the provider cannot be
// reached.
func (c *LoginClient) Begin(ctx context.Context, login Login) (string, error) {
	config, err := c.config(ctx)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(login.State, oidc.Nonce(login.Nonce), oauth2.S256ChallengeOption(login.Verifier)), nil
}

// Finish exchanges the code of the provider's response and returns the claims of the verified ID token. The provider's
// tokens are not kept. Errors are for the log, because they may quote the provider; they match ErrProvider or
// ErrIdentity.
func (c *LoginClient) Finish(ctx context.Context, code string, login Login) (map[string]any, error) {
	config, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, c.options.HTTP), code, oauth2.VerifierOption(login.Verifier))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	raw, _ := token.Extra("id_token").(string)
	if err := Check(raw, TypeJWT); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	now := c.options.Now()
	verifier := oidc.NewVerifier(c.options.Issuer, c.keys, &oidc.Config{
		ClientID: c.options.ID, SupportedSigningAlgs: Algorithms,
		Now: func() time.Time { return now.Add(-clockSkew) },
	})
	id, err := verifier.Verify(ctx, raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	case id.IssuedAt.After(now.Add(clockSkew)):
		return nil, fmt.Errorf("%w: the token was issued in the future", ErrIdentity)
	case !hmac.Equal([]byte(id.Nonce), []byte(login.Nonce)):
		return nil, fmt.Errorf("%w: the nonce does not match", ErrIdentity)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if party, ok := claims["azp"]; (ok || len(id.Audience) > 1) && party != c.options.ID {
		return nil, fmt.Errorf("%w: the token was made for another client (OpenID Connect Core 1.0, section 3.1.3.7)",
			ErrIdentity)
	}
	if err := checkIDToken(claims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return claims, nil
}

// EmailClaim is the claim with a person's address. Some providers let people enter any address, so that User demands
// that it is verified.
const EmailClaim = "email"

// User returns the name of a person, which is in the given claim of verified claims. The error matches ErrIdentity.
func User(claims map[string]any, claim string) (string, error) {
	name, _ := claims[claim].(string)
	if err := identity.Check(name); err != nil {
		return "", fmt.Errorf("%w: the claim %s: %w", ErrIdentity, claim, err)
	}
	if claim == EmailClaim && claims["email_verified"] != true && claims["email_verified"] != "true" {
		return "", fmt.Errorf("%w: the provider does not say that it has verified the address (email_verified): "+
			"name another claim as userClaim", ErrIdentity)
	}
	return name, nil
}
