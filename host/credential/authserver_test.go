package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// authServer is an authorization server with one-time refresh tokens, like freee's.
type authServer struct {
	t *testing.T

	mu      sync.Mutex
	codes   map[string]url.Values // authorization codes and the queries that requested them
	refresh string                // the valid refresh token
	issued  int
	posts   []url.Values
	// before, if set, may answer instead of the server.
	before func(w http.ResponseWriter, form url.Values) (done bool)
	extra  map[string]any // additional members of a reply
}

func newAuthServer(t *testing.T) *authServer {
	return &authServer{t: t, codes: map[string]url.Values{}, refresh: "refresh-0000"}
}

func (s *authServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/authorize":
		s.authorize(w, r)
	case "/token":
		s.token(w, r)
	default:
		s.t.Errorf("unexpected request for %s", r.URL.Path)
	}
}

func (s *authServer) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	code := fmt.Sprint("code-", len(s.codes))
	s.codes[code] = query
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+url.Values{"code": {code},
		"state": {query.Get("state")}}.Encode(), http.StatusFound)
}

func (s *authServer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.Header.Get("Authorization") != "" {
		s.t.Errorf("bad request: %v %s", err, r.Method)
	}
	s.mu.Lock()
	s.posts = append(s.posts, r.PostForm)
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r.PostForm) {
		return
	}
	s.answer(w, r.PostForm)
}

func (s *authServer) answer(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, knownCode := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	switch {
	case form.Get("client_id") != "client" || form.Get("client_secret") != "client-secret":
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
	case knownCode, form.Get("grant_type") == "refresh_token" && form.Get("refresh_token") == s.refresh,
		form.Get("device_code") != "":
		reply(w, http.StatusOK, s.next())
	default:
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_grant",
			"error_description": "not valid: " + form.Get("refresh_token")})
	}
}

// next creates the next pair of tokens. The caller holds mu.
func (s *authServer) next() map[string]any {
	s.issued++
	s.refresh = fmt.Sprintf("refresh-%04d", s.issued)
	pair := map[string]any{
		"access_token": fmt.Sprintf("access-%04d", s.issued), "token_type": "bearer", "expires_in": 21600,
		"refresh_token": s.refresh,
		"scope":         "read write", "company_id": "1234", "external_cid": "12-34",
	}
	for name, value := range s.extra {
		pair[name] = value
	}
	return pair
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// refreshes returns the number of refresh requests.
func (s *authServer) refreshes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, form := range s.posts {
		if form.Get("grant_type") == "refresh_token" {
			n++
		}
	}
	return n
}

// errBroken is the panic value with which a handler breaks the connection.
var errBroken = errors.New("the connection was broken off")

// RoundTrip answers without a network, so that tests can use synctest.
func (s *authServer) RoundTrip(r *http.Request) (response *http.Response, err error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	defer func() {
		if recover() != nil {
			response, err = nil, errBroken
		}
	}()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// freeeSpec returns the Spec of the tests' credential, with the server at base.
func freeeSpec(base string) Spec {
	return Spec{
		Provider: Freee, ClientID: "client", ClientSecret: command("echo", "client-secret"),
		AuthorizeURL: base + "/authorize", TokenURL: base + "/token",
	}
}

// options returns Options with the credential freee and a store at dir.
func options(dir string, spec Spec) Options {
	o := Options{
		Credentials: map[string]Spec{"freee": spec},
		Store:       func(ctx context.Context) (*store.Store, error) { return drivers.Open(ctx, dir, nil) },
	}
	if store.IsURL(dir) {
		o.Key = command("echo", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	}
	return o
}

// offline returns a Broker with a store at dir whose requests go to s without a network.
func (s *authServer) offline(dir string) *Broker {
	s.t.Helper()
	b := newBroker(s.t, options(dir, freeeSpec("http://127.0.0.1:1")))
	b.client.Transport = s
	return b
}

// storeConnection stores a connection. issued and expires are relative to now.
func storeConnection(t *testing.T, b *Broker, tenant string, issued, expires time.Duration) {
	t.Helper()
	now := time.Now()
	r := &record{Connection: "first", AccessToken: "access-0000", RefreshToken: "refresh-0000",
		Issued: now.Add(issued), Expires: now.Add(expires),
		Public: map[string]string{"company_id": "1234"}}
	if err := b.vault.put(t.Context(), id{tenant, "freee"}, r); err != nil {
		t.Fatal(err)
	}
}

// token returns the header value that a request would carry now, or the error.
func token(t *testing.T, b *Broker, tenant string) string {
	t.Helper()
	c, err := b.Credential(t.Context(), tenant, "freee")
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(c.Value, "Bearer ")
}

// only returns the only Status.
func only(t *testing.T, b *Broker) Status {
	t.Helper()
	list, err := b.Status(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("status %+v, %v", list, err)
	}
	return list[0]
}
