package authserver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

const (
	providerURL = "https://id.example.com"
	resourceURL = "https://hako.example.com/mcp"
	documentURL = "https://client.example.com/oauth/client.json"
	appURL      = "https://app.example.com/callback"
	loopbackURL = "http://127.0.0.1:3000/callback"
)

var providerKey = func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}()

// provider is a fake identity provider that is reached without a network.
type provider struct {
	oidctest.Server

	mu     sync.Mutex
	logins map[string]url.Values // authorization requests by code
	// claims change those of the next ID tokens.
	claims map[string]any
	down   bool
}

func newProvider() *provider {
	p := &provider{logins: map[string]url.Values{}}
	p.PublicKeys = []oidctest.PublicKey{{PublicKey: providerKey.Public(), KeyID: "one", Algorithm: oidc.ES256}}
	p.Algorithms = []string{oidc.ES256}
	p.SetIssuer(providerURL)
	return p
}

// RoundTrip makes the provider a client's transport.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := httptest.NewRecorder()
	switch {
	case p.down:
		return nil, io.ErrUnexpectedEOF
	case r.URL.Path == "/token":
		p.exchange(w, r)
	default:
		p.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

func (p *provider) exchange(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	asked := p.logins[r.PostForm.Get("code")]
	delete(p.logins, r.PostForm.Get("code"))
	id, secret, _ := r.BasicAuth()
	if asked == nil || !verifies(r.PostForm.Get("code_verifier"), asked.Get("code_challenge")) || id != "hako" || secret != "s3cret" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": providerURL, "aud": "hako", "sub": "1", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Minute).Unix(), "email": "aki@example.com", "email_verified": true,
		"groups": []string{"staff"}, "hd": "example.com",
	}
	maps.Copy(claims, p.claims)
	data, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "provider-access", "refresh_token": "provider-refresh",
		"token_type": "Bearer", "id_token": oidctest.SignIDToken(providerKey, "one", oidc.ES256, string(data))})
}

// login logs somebody in and returns the URL to which the provider redirects.
func (p *provider) login(t *testing.T, location string) string {
	t.Helper()
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, providerURL+"/auth?") {
		t.Fatalf("the browser is sent to %q (%v), not to the provider", location, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.logins[code] = at.Query()
	return at.Query().Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {at.Query().Get("state")}}.Encode()
}

// world is a server with its provider, a store and recorded events.
type world struct {
	*Server
	t        *testing.T
	store    *store.Store
	provider *provider
	// ahead is added to the clock, in nanoseconds.
	ahead  atomic.Int64
	events []Event
	// sites answers requests for documents.
	sites func(*http.Request) (*http.Response, error)
	sent  int // documents
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, provider: newProvider()}
	var err error
	if w.store, err = drivers.Open(t.Context(), storetest.Where(t), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	t.Setenv("HAKO_TEST_CLIENT_SECRET", "s3cret")
	w.Server = w.replica(change...)
	return w
}

// replica returns another server over the same store.
func (w *world) replica(change ...func(*Options)) *Server {
	w.t.Helper()
	o := Options{
		Resource: resourceURL, Store: w.store, Scopes: []string{"tools"},
		Provider: Provider{Issuer: providerURL, ClientID: "hako"},
		Client:   &http.Client{Transport: w.provider},
		Documents: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			w.sent++
			return w.sites(r)
		})},
		Now:    func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
		Record: func(e Event) { w.events = append(w.events, e) },
	}
	o.Provider.ClientSecret.Env = "HAKO_TEST_CLIENT_SECRET"
	for _, change := range change {
		change(&o)
	}
	s, err := New(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// browser keeps cookies and sends requests to a server.
type browser struct {
	cookies map[string]string
	address string
}

func newBrowser() *browser { return &browser{map[string]string{}, "192.0.2.1"} }

func (b *browser) send(s *Server, r *http.Request) *http.Response {
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	r.RemoteAddr, r.Host = b.address+":1234", "hako.example.com"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	response := w.Result()
	for _, cookie := range response.Cookies() {
		b.cookies[cookie.Name] = cookie.Value
	}
	return response
}

func (b *browser) get(s *Server, target string) *http.Response {
	return b.send(s, httptest.NewRequest(http.MethodGet, target, nil))
}

func (b *browser) post(s *Server, path string, form url.Values) *http.Response {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(s, r)
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// members decodes a JSON response.
func members(t *testing.T, response *http.Response) map[string]any {
	t.Helper()
	found := map[string]any{}
	text := body(t, response)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return found
}

// client is an MCP client with a registration.
type client struct{ id, redirect, verifier, state string }

func (w *world) register(redirects ...string) *client {
	w.t.Helper()
	data, err := json.Marshal(map[string]any{"client_name": "Test client", "redirect_uris": redirects,
		"grant_types": []string{"authorization_code", "refresh_token"}, "application_type": "native"})
	if err != nil {
		w.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, registerPath, bytes.NewReader(data))
	response := newBrowser().send(w.Server, r)
	if response.StatusCode != http.StatusCreated {
		w.t.Fatalf("registration: %s %s", response.Status, body(w.t, response))
	}
	id, _ := members(w.t, response)["client_id"].(string)
	return &client{id, redirects[0], strings.Repeat("verifier-", 6), "state-" + rand.Text()}
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// query is the client's authorization request.
func (c *client) query(change url.Values) string {
	q := url.Values{"response_type": {"code"}, "client_id": {c.id}, "redirect_uri": {c.redirect}, "state": {c.state},
		"code_challenge": {challengeOf(c.verifier)}, "code_challenge_method": {"S256"}, "resource": {resourceURL}}
	for name, values := range change {
		if q[name] = values; values == nil {
			q.Del(name)
		}
	}
	return authorizePath + "?" + q.Encode()
}

var hiddenField = regexp.MustCompile(`name="(request|proof)" value="([^"]*)"`)

// answer is the form of the consent page.
func answer(t *testing.T, response *http.Response) url.Values {
	t.Helper()
	text, form := body(t, response), url.Values{"answer": {"yes"}}
	for _, match := range hiddenField.FindAllStringSubmatch(text, -1) {
		form.Set(match[1], match[2])
	}
	if response.StatusCode != http.StatusOK || len(form) != 3 {
		t.Fatalf("no consent page: %s\n%s", response.Status, text)
	}
	return form
}

// authorize goes through the login in a browser and returns the parameters that the client gets.
func (w *world) authorize(b *browser, c *client) url.Values {
	w.t.Helper()
	response := b.post(w.Server, consentPath, answer(w.t, b.get(w.Server, c.query(nil))))
	response = b.get(w.Server, w.provider.login(w.t, response.Header.Get("Location")))
	return parameters(w.t, response, c.redirect)
}

// parameters are those of a redirect to the client.
func parameters(t *testing.T, response *http.Response, redirect string) url.Values {
	t.Helper()
	location := response.Header.Get("Location")
	if !strings.HasPrefix(location, redirect+"?") {
		t.Fatalf("%s, redirected to %q: %s", response.Status, location, body(t, response))
	}
	at, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return at.Query()
}

// exchange asks for tokens.
func (c *client) exchange(s *Server, code string, change url.Values) *http.Response {
	form := url.Values{"grant_type": {grantCode}, "code": {code}, "client_id": {c.id}, "redirect_uri": {c.redirect},
		"code_verifier": {c.verifier}, "resource": {resourceURL}}
	maps.Copy(form, change)
	return newBrowser().post(s, tokenPath, form)
}

func (c *client) refresh(s *Server, token string, change url.Values) *http.Response {
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {token}, "client_id": {c.id},
		"resource": {resourceURL}}
	maps.Copy(form, change)
	return newBrowser().post(s, tokenPath, form)
}

// login returns the tokens of a new login.
func (w *world) login(c *client) (access, refresh string) {
	w.t.Helper()
	return tokensOf(w.t, c.exchange(w.Server, w.authorize(newBrowser(), c).Get("code"), nil))
}

func tokensOf(t *testing.T, response *http.Response) (access, refresh string) {
	t.Helper()
	m := members(t, response)
	access, _ = m["access_token"].(string)
	refresh, _ = m["refresh_token"].(string)
	if response.StatusCode != http.StatusOK || access == "" || refresh == "" {
		t.Fatalf("%s: %v", response.Status, m)
	}
	return access, refresh
}

// isValid reports whether a server accepts an access token.
func isValid(t *testing.T, s *Server, token string) bool {
	t.Helper()
	by, err := s.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return by != nil
}
