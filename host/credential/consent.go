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

// Consent is one authorization that is under way (RFC 6749, section 4.1). It is safe for concurrent use.
type Consent struct {
	// URL is where the operator gives the consent, in a browser.
	URL string

	connection *connection
	party      *party
	redirect   string
	state      string
	verifier   string // RFC 7636; empty if the provider does not know it

	mu   sync.Mutex // guards used
	used bool
}

// ErrNotConnectable is the error for a credential that there is nothing to consent to.
var ErrNotConnectable = errors.New("it needs no consent")

// connection returns the slot of a credential that is connected.
func (b *Broker) connection(tenant, name string) (*connection, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, ok := s.(*connection)
	if !ok {
		return nil, fmt.Errorf("the credential %s: %w: it is used as it is configured", id{tenant, name}, ErrNotConnectable)
	}
	return c, nil
}

// Consent starts an authorization whose code is sent to redirect; if redirect is empty, to the provider's page that shows the code, or
// to the configured address. For MCP the authorization server is looked for first, and hako registered there. The error matches
// ErrNotConnectable if there is nothing to consent to.
func (b *Broker) Consent(ctx context.Context, tenant, name, redirect string) (*Consent, error) {
	c, err := b.connection(tenant, name)
	if err != nil {
		return nil, err
	}
	provider := presets[c.spec.Provider]
	redirect = cmp.Or(redirect, provider.codeRedirect, c.spec.RedirectURL)
	if c.spec.Provider == MCP {
		redirect = cmp.Or(redirect, "http://127.0.0.1"+callbackPath) // where nobody answers: the address of the page has the code
	}
	switch {
	case c.onlyDevice():
		return nil, fmt.Errorf("the credential %s has no authorizeUrl: it is connected with a device code", c.id)
	case redirect == "":
		return nil, fmt.Errorf("%s has no page that shows the code: set credentials.%s.redirectUrl to the address that is registered there", c.spec.Provider, name)
	}
	p := c.party()
	if c.spec.Provider == MCP {
		if p, err = c.discover(ctx, redirect); err != nil {
			return nil, fmt.Errorf("the credential %s: %w", c.id, err)
		}
	}
	consent := &Consent{connection: c, party: p, redirect: redirect, state: rand.Text()}
	config := oauth2.Config{ClientID: p.ClientID, RedirectURL: redirect, Scopes: p.Scopes, Endpoint: oauth2.Endpoint{AuthURL: p.AuthorizeURL}}
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

// errState is the error for an answer that does not belong to the consent.
var errState = errors.New("the answer does not belong to this consent, or came a second time")

// claim takes the one use that the state of an answer has.
func (c *Consent) claim(answer url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(c.state)) == 0 {
		return errState
	}
	if err := c.party.issued(answer); err != nil {
		return err
	}
	c.used = true
	return nil
}

// Exchange trades the code in that the operator was shown, or the address with the code that the browser was sent to, for a connection,
// which is stored, and returns its status. It takes the place of an earlier connection. The error is that of a wrong address, the
// authorization server's, the store's or ctx's.
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
		return nil, errors.New("there is no code in what was pasted")
	}
	return c.exchange(ctx, code)
}

func (c *Consent) exchange(ctx context.Context, code string) (*Status, error) {
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

// connect asks for the first token of a connection and stores it.
func (c *connection) connect(ctx context.Context, p *party, form url.Values) (*Status, error) {
	// The store comes first: a token that cannot be stored is lost.
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
		return nil, fmt.Errorf("the connection is made, but cannot be stored; make room and connect again: %w", err)
	}
	status := c.broker.statusOf(ctx, c.id)
	return &status, nil
}

// Remove forgets the connection of a tenant, also one that is no longer configured, and reports whether there was one. The provider is not
// told: the application's access is taken back there. The error is the store's.
func (b *Broker) Remove(ctx context.Context, tenant, name string) (bool, error) {
	return b.vault.remove(ctx, id{tenant, name})
}

// OnlyDevice reports that ConnectDevice is the one way to connect a credential.
func (b *Broker) OnlyDevice(tenant, name string) bool {
	c, err := b.connection(tenant, name)
	return err == nil && c.onlyDevice()
}

func (c *connection) onlyDevice() bool { return c.spec.AuthorizeURL == "" && c.spec.DeviceURL != "" }
