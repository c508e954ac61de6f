package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/issuer"
)

const (
	endpointURL = "https://id.example.com/introspect"
	resourceURL = "https://hako.example.com/mcp"
)

// endpoint is a fake introspection endpoint, as a client's transport.
type endpoint struct {
	mu     sync.Mutex
	asked  int
	last   *http.Request
	form   string
	answer func(w http.ResponseWriter)
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked, e.last, e.form = e.asked+1, r, string(data)
	w := httptest.NewRecorder()
	e.answer(w)
	return w.Result(), nil
}

// active answers with the claims of an active token, changed.
func active(change map[string]any) func(http.ResponseWriter) {
	claims := map[string]any{"active": true, "sub": "aki", "aud": resourceURL, "scope": "a b", "token_type": "Bearer"}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return func(w http.ResponseWriter) { _ = json.NewEncoder(w).Encode(claims) }
}

// introspecting returns an Auth that asks the endpoint, and moves its clock by *ahead.
func introspecting(t *testing.T, e *endpoint, ahead *time.Duration, change ...func(*OAuth)) *Auth {
	t.Helper()
	t.Setenv("HAKO_TEST_SECRET", "s:3 cret")
	o := &OAuth{Resource: resourceURL, Client: &http.Client{Transport: e},
		Introspection: &Introspection{URL: endpointURL, ClientID: "hako"}}
	o.Introspection.ClientSecret.Env = "HAKO_TEST_SECRET"
	for _, change := range change {
		change(o)
	}
	return mustNew(t, Options{OAuth: o, Now: func() time.Time { return time.Now().Add(*ahead) }})
}

func TestIntrospection(t *testing.T) {
	var ahead time.Duration
	e := &endpoint{}
	a := introspecting(t, e, &ahead)
	e.answer = active(map[string]any{"exp": time.Now().Add(20 * time.Second).Unix()})
	for range 3 {
		by, err := a.verify(t.Context(), "opaque")
		if err != nil || by.User != "aki" || len(by.Scopes) != 2 || by.Issuer != endpointURL || by.Expires.IsZero() {
			t.Fatalf("the token is of %+v, %v", by, err)
		}
	}
	id, secret, _ := e.last.BasicAuth()
	if e.asked != 1 || id != "hako" || secret != "s%3A3+cret" || !strings.Contains(e.form, "token=opaque") {
		t.Errorf("asked %d times, as %s with %s: %s", e.asked, id, secret, e.form)
	}
	ahead = 20 * time.Second
	if _, err := a.verify(t.Context(), "opaque"); !errors.Is(err, errInvalidToken) || e.asked != 2 {
		t.Errorf("the token outlives its end: %v, asked %d times", err, e.asked)
	}
	e.answer, e.asked = active(map[string]any{"active": false}), 0
	for range 3 {
		if _, err := a.verify(t.Context(), "revoked"); !errors.Is(err, errInvalidToken) {
			t.Errorf("an inactive token: %v", err)
		}
	}
	e.answer = active(nil)
	ahead += inactiveTime
	if _, err := a.verify(t.Context(), "revoked"); err != nil || e.asked != 2 {
		t.Errorf("after a while it is asked again: %v, asked %d times", err, e.asked)
	}
	e.answer = active(map[string]any{"active": false})
	ahead += activeTime
	if _, err := a.verify(t.Context(), "revoked"); !errors.Is(err, errInvalidToken) {
		t.Errorf("a revoked token is valid for longer than %v: %v", activeTime, err)
	}
}

// TestHostileIntrospection: only an active bearer token for this resource counts, whatever the endpoint says besides.
func TestHostileIntrospection(t *testing.T) {
	var ahead time.Duration
	for name, test := range map[string]struct {
		change map[string]any
		valid  bool
	}{
		"list of audiences": {map[string]any{"aud": []string{"x", resourceURL}}, true},
		"no audience":       {map[string]any{"aud": nil}, false},
		"another audience":  {map[string]any{"aud": "https://other.example.com/mcp"}, false},
		"expired":           {map[string]any{"exp": time.Now().Add(-time.Second).Unix()}, false},
		"expired, as text":  {map[string]any{"exp": strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)}, false},
		"expired in 1970":   {map[string]any{"exp": 0}, false},
		"expired before":    {map[string]any{"exp": -1}, false},
		"milliseconds":      {map[string]any{"exp": 1e15}, false},
		"no end":            {map[string]any{"exp": nil}, true},
		"a list of ends":    {map[string]any{"exp": []int{1}}, false},
		"text as beginning": {map[string]any{"nbf": "tomorrow"}, false},
		"not yet valid":     {map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, false},
		"from the future":   {map[string]any{"iat": time.Now().Add(time.Hour).Unix()}, false},
		"active as text":    {map[string]any{"active": "true"}, false},
		"active as one":     {map[string]any{"active": 1}, false},
		"no active":         {map[string]any{"active": nil}, false},
		"no user":           {map[string]any{"sub": nil}, false},
		"hidden characters": {map[string]any{"sub": "a\u202eb"}, false},
		"another issuer":    {map[string]any{"iss": "https://evil.example"}, false},
		"its issuer":        {map[string]any{"iss": "https://id.example.com"}, true},
		"bound to a key":    {map[string]any{"cnf": map[string]any{"jkt": "x"}}, false},
		"DPoP":              {map[string]any{"token_type": "DPoP"}, false},
		"an ID token":       {map[string]any{"nonce": "x"}, false},
	} {
		e := &endpoint{answer: active(test.change)}
		a := introspecting(t, e, &ahead, func(o *OAuth) { o.Introspection.Issuer = "https://id.example.com" })
		if by, err := a.verify(t.Context(), "opaque"); (err == nil) != test.valid {
			t.Errorf("%s: %+v, %v", name, by, err)
		}
	}
	e := &endpoint{answer: active(nil)}
	a := introspecting(t, e, &ahead)
	for _, token := range []string{strings.Repeat("x", issuer.MaxToken+1), "a\nb", "a b", "a\x00"} {
		if _, err := a.verify(t.Context(), token); !errors.Is(err, errInvalidToken) || e.asked != 0 {
			t.Errorf("%.20q: %v, asked %d times", token, err, e.asked)
		}
	}
}

// TestIntrospectionOfOwnTokens: the endpoint never receives a token of hako's, which may be valid for the console.
func TestIntrospectionOfOwnTokens(t *testing.T) {
	var ahead time.Duration
	e := &endpoint{answer: active(nil)}
	a := introspecting(t, e, &ahead)
	token, _ := bearer.New()
	if by, err := a.verify(t.Context(), token); !errors.Is(err, errInvalidToken) || e.asked != 0 {
		t.Errorf("%+v, %v, asked %d times", by, err, e.asked)
	}
}

// TestHostileIntrospectionEndpoint: an endpoint that fails is not asked at once again, and opens nothing.
func TestHostileIntrospectionEndpoint(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"too many":   func(w http.ResponseWriter) { w.Header().Set("Retry-After", "30"); w.WriteHeader(429) },
		"an error":   func(w http.ResponseWriter) { w.WriteHeader(500) },
		"refused":    func(w http.ResponseWriter) { w.WriteHeader(401) },
		"redirect":   func(w http.ResponseWriter) { w.Header().Set("Location", "https://evil.example"); w.WriteHeader(307) },
		"no JSON":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") },
		"a list":     func(w http.ResponseWriter) { _, _ = io.WriteString(w, "[]") },
		"null":       func(w http.ResponseWriter) { _, _ = io.WriteString(w, "null") },
		"duplicates": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"active": false, "active": true}`) },
		"huge": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"active": true, "x": "`+strings.Repeat("x", maxAnswer)+`"}`)
		},
	} {
		var ahead time.Duration
		e := &endpoint{answer: answer}
		a := introspecting(t, e, &ahead)
		for _, token := range []string{"one", "one", "two"} {
			if by, err := a.verify(t.Context(), token); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %+v, %v", name, by, err)
			}
		}
		if e.asked != 1 {
			t.Errorf("%s: asked %d times at once", name, e.asked)
		}
		e.answer, ahead = active(nil), 2*time.Second
		_, err := a.verify(t.Context(), "one")
		if waits := name == "too many"; errors.Is(err, ErrUnavailable) != waits {
			t.Errorf("%s: two seconds later: %v", name, err)
		}
	}
}

// TestHostileIntrospectionFlood: a slow endpoint gets a bounded number of requests at once, and one for a token.
func TestHostileIntrospectionFlood(t *testing.T) {
	var ahead time.Duration
	begun, release := make(chan struct{}, 1000), make(chan struct{})
	a := introspecting(t, nil, &ahead, func(o *OAuth) {
		o.Client = &http.Client{Transport: slow(func(*http.Request) (*http.Response, error) {
			begun <- struct{}{}
			<-release
			w := httptest.NewRecorder()
			active(nil)(w)
			return w.Result(), nil
		})}
	})
	var group sync.WaitGroup
	for i := range maxIntrospections {
		for range 3 {
			group.Go(func() { _, _ = a.verify(context.Background(), strings.Repeat("x", i+1)) })
		}
	}
	for range maxIntrospections {
		<-begun
	}
	if _, err := a.verify(t.Context(), "one-more"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("beyond the limit: %v", err)
	}
	close(release)
	group.Wait()
	if n := len(begun); n != 0 {
		t.Errorf("%d requests more than tokens", n)
	}
	i := a.oauth.introspection
	// A request may have looked for the answer before it came, and ask for it afterwards.
	if _, err := i.ask("x", sha256.Sum256([]byte("x"))); err != nil || len(begun) != 0 {
		t.Errorf("%v, %d requests for a token whose answer is known", err, len(begun))
	}
	for n := range maxAnswers + 10 {
		i.mu.Lock()
		i.answers[[32]byte{byte(n), byte(n >> 8)}] = answer{}
		i.mu.Unlock()
	}
	if _, err := a.verify(t.Context(), "the-next"); err != nil || len(i.answers) > maxAnswers {
		t.Errorf("%v, %d answers are stored", err, len(i.answers))
	}
}

type slow func(*http.Request) (*http.Response, error)

func (f slow) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
