package credential

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/oauth2"
)

// Consent is a running authorization (RFC 6749, section 4.1). It is safe for concurrent use.
type Consent struct {
	// URL is the page on which the operator gives the consent.
	URL string

	connection *connection
	party      *party
	redirect   string
	state      string
	verifier   string // RFC 7636; empty if the provider does not support it

	mu   sync.Mutex // guards used
	used bool
}

// ErrNotConnectable is the error for a credential that needs no consent.
var ErrNotConnectable = errors.New("it needs no consent")

// connection returns a credential of a kind that needs consent.
func (b *Broker) connection(tenant, name string) (*connection, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, ok := s.(*connection)
	if !ok {
		return nil, fmt.Errorf("the credential %s: %w: it is used as configured", id{tenant, name}, ErrNotConnectable)
	}
	return c, nil
}

// Consent starts an authorization with the given redirect URI. If redirect is empty, the provider's page that shows the
// code is used, or the configured address. For MCP it first discovers the authorization server and registers hako
// there. The error matches ErrNotConnectable if the credential needs no consent.
func (b *Broker) Consent(ctx context.Context, tenant, name, redirect string) (*Consent, error) {
	c, err := b.connection(tenant, name)
	if err != nil {
		return nil, err
	}
	provider := presets[c.spec.Provider]
	redirect = cmp.Or(redirect, provider.codeRedirect, c.spec.RedirectURL)
	if c.spec.Provider == MCP {
		// nothing answers there: the operator copies the page's address, which contains the code
		redirect = cmp.Or(redirect, "http://127.0.0.1"+callbackPath)
	}
	switch {
	case c.onlyDevice():
		return nil, fmt.Errorf("the credential %s has no authorizeUrl: connect it with a device code", c.id)
	case redirect == "":
		return nil, fmt.Errorf("%s has no page that shows the code: set credentials.%s.redirectUrl to the address "+
			"that is registered there", c.spec.Provider, name)
	}
	p := c.party()
	if c.spec.Provider == MCP {
		if p, err = c.discover(ctx, redirect); err != nil {
			return nil, fmt.Errorf("the credential %s: %w", c.id, err)
		}
	}
	consent := &Consent{connection: c, party: p, redirect: redirect, state: rand.Text()}
	// x/oauth2 creates the URL and does not renew: it would not store a pair of tokens before its use.
	config := oauth2.Config{ClientID: p.ClientID, RedirectURL: redirect, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizeURL}}
	var parameters []oauth2.AuthCodeOption
	if p.Resource != "" {
		parameters = append(parameters, oauth2.SetAuthURLParam("resource", p.Resource))
	}
	for key, value := range provider.parameters {
		parameters = append(parameters, oauth2.SetAuthURLParam(key, value))
	}
	if provider.pkce {
		consent.verifier = oauth2.GenerateVerifier()
		parameters = append(parameters, oauth2.S256ChallengeOption(consent.verifier))
	}
	consent.URL = config.AuthCodeURL(consent.state, parameters...)
	return consent, nil
}

// errState is the error for a response with a wrong or used state.
var errState = errors.New("the response does not belong to this consent, or was received twice")

// claim checks the state of a response, which is valid once.
func (c *Consent) claim(answer url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(c.state)) == 0 {
		return errState
	}
	if err := c.party.checkIssuer(answer); err != nil {
		return err
	}
	c.used = true
	return nil
}

// Exchange exchanges an authorization code for a connection, stores it in place of an earlier one, and returns its
// status. pasted is the code, or the address with the code to which the browser was redirected. The error is for an
// invalid address, or from the authorization server, the store or ctx.
func (c *Consent) Exchange(ctx context.Context, pasted string) (*Status, error) {
	code := strings.TrimSpace(pasted)
	if u, err := url.Parse(code); err == nil && u.IsAbs() {
		query := u.Query()
		if err := c.claim(query); err != nil {
			return nil, err
		}
		code = query.Get("code")
	}
	if code == "" {
		return nil, errors.New("the pasted text contains no code")
	}
	return c.redeemCode(ctx, code)
}

func (c *Consent) redeemCode(ctx context.Context, code string) (*Status, error) {
	form, err := c.connection.client(ctx, c.party)
	if err != nil {
		return nil, err
	}
	form.Set("grant_type", "authorization_code")
	form.Set("code", code)
	form.Set("redirect_uri", c.redirect)
	if c.verifier != "" {
		form.Set("code_verifier", c.verifier)
	}
	return c.connection.connect(ctx, c.party, form)
}

// connect requests the first token of a connection and stores it.
func (c *connection) connect(ctx context.Context, p *party, form url.Values) (*Status, error) {
	// Check the store first: a token that cannot be stored is lost.
	release, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	reply, err := c.broker.ask(ctx, p.TokenURL, form)
	if err != nil {
		return nil, err
	}
	r := c.record(reply, nil)
	if c.spec.Provider == MCP {
		r.Party = p
	}
	if err := c.broker.vault.put(ctx, c.id, r); err != nil {
		return nil, fmt.Errorf("the consent was given, but the connection cannot be stored: fix that and connect "+
			"again: %w", err)
	}
	status := c.broker.statusOf(ctx, c.id)
	return &status, nil
}

// Remove deletes the connection of a tenant, even if it is no longer configured, and reports whether it existed. It
// does not revoke the access at the provider. Errors are those of the store.
func (b *Broker) Remove(ctx context.Context, tenant, name string) (bool, error) {
	return b.vault.remove(ctx, id{tenant, name})
}

// OnlyDevice reports whether a credential can be connected with ConnectDevice only.
func (b *Broker) OnlyDevice(tenant, name string) bool {
	c, err := b.connection(tenant, name)
	return err == nil && c.onlyDevice()
}

func (c *connection) onlyDevice() bool { return c.spec.AuthorizeURL == "" && c.spec.DeviceURL != "" }
