package mcpserver

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newAuth(t *testing.T, options AuthOptions) *Auth {
	t.Helper()
	auth, err := NewAuth(options)
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

func TestNewToken(t *testing.T) {
	t.Parallel()
	token, hash := NewToken()
	other, _ := NewToken()
	if !regexp.MustCompile(`^hako_[A-Za-z0-9_-]{43}$`).MatchString(token) || token == other {
		t.Errorf("tokens %s and %s", token, other)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(hash) {
		t.Errorf("hash %s", hash)
	}
}

// TestFailedLogins: refused tokens are told, with what is proven of whose they are, and not without end. No token is no
// attempt.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	old, oldHash := NewToken()
	narrow, narrowHash := NewToken()
	var told []FailedLogin
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{
		LoginFailed: func(f FailedLogin) { told = append(told, f) },
		Auth: newAuth(t, AuthOptions{Scopes: []string{"tools"}, Tokens: []Token{
			{Name: "old", User: "aki", Tenant: "acme", Hash: oldHash, Scopes: []string{"tools"},
				Expires: time.Now().Add(-time.Second)},
			{Name: "narrow", Hash: narrowHash},
		}}),
	}).Handler()
	for authorization, want := range map[string]string{
		"":                 "",
		"Bearer guess":     "{192.0.2.1    the token is not valid here}",
		"Bearer " + old:    "{192.0.2.1 aki acme old the token has expired}",
		"Bearer " + narrow: "{192.0.2.1 narrow  narrow the token lacks a scope}",
	} {
		told = nil
		do(h, post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization", authorization))
		if got := strings.Trim(fmt.Sprint(told), "[]"); got != want {
			t.Errorf("%s: %s, want %s", authorization, got, want)
		}
	}
	told = nil
	for range 20 {
		do(h, post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization", "Bearer guess"))
	}
	if len(told) != 7 { // three came before
		t.Errorf("%d of 20 are told", len(told))
	}
}

func TestStaticTokens(t *testing.T) {
	t.Parallel()
	good, goodHash := NewToken()
	old, oldHash := NewToken()
	narrow, narrowHash := NewToken()
	unknown, _ := NewToken()
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: newAuth(t, AuthOptions{
		Scopes: []string{"tools", "more"},
		Tokens: []Token{
			{Name: "good", Hash: goodHash, Scopes: []string{"more", "tools", "other"},
				Expires: time.Now().Add(time.Hour)},
			{Name: "old", Hash: oldHash, Scopes: []string{"tools", "more"}, Expires: time.Now().Add(-time.Second)},
			{Name: "narrow", Hash: narrowHash, Scopes: []string{"tools"}},
		},
	})}).Handler()
	invalid := `Bearer error="invalid_token", error_description="The token is not valid here, or has expired.", scope="tools more"`
	missing := `Bearer scope="tools more"`
	tests := map[string]struct {
		authorization string
		status        int
		challenge     string
	}{
		"good":       {"Bearer " + good, http.StatusOK, ""},
		"lower case": {"bearer " + good, http.StatusOK, ""},
		"expired":    {"Bearer " + old, http.StatusUnauthorized, invalid},
		"unknown":    {"Bearer " + unknown, http.StatusUnauthorized, invalid},
		"almost":     {"Bearer " + good[:len(good)-1], http.StatusUnauthorized, invalid},
		"the hash":   {"Bearer " + goodHash, http.StatusUnauthorized, invalid},
		"without a scope": {"Bearer " + narrow, http.StatusForbidden,
			`Bearer error="insufficient_scope", error_description="The token lacks a scope that this server needs.", scope="tools more"`},
		"none":           {"", http.StatusUnauthorized, missing},
		"another scheme": {"Basic " + good, http.StatusUnauthorized, missing},
		"a scheme alone": {"Bearer", http.StatusUnauthorized, missing},
		"an empty token": {"Bearer ", http.StatusUnauthorized, missing},
		"no JWT":         {"Bearer a.b.c", http.StatusUnauthorized, invalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				r := post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization",
					test.authorization)
				r.Method = method
				w := do(h, r)
				want := test.status
				if want == http.StatusOK && method != http.MethodPost {
					want = http.StatusMethodNotAllowed
				}
				if w.Code != want || w.Header().Get("WWW-Authenticate") != test.challenge {
					t.Errorf("%s: %d, WWW-Authenticate: %s", method, w.Code, w.Header().Get("WWW-Authenticate"))
				}
				if strings.Contains(w.Body.String(), "hako_") {
					t.Errorf("%s: the answer holds the token: %s", method, w.Body)
				}
			}
		})
	}
}

func TestTokenInTheURLIsRefused(t *testing.T) {
	t.Parallel()
	token, hash := NewToken()
	h := newServer(t, offer(t, nil, "x"), nil,
		&Options{Auth: newAuth(t, AuthOptions{Tokens: []Token{{Name: "ci", Hash: hash}}})}).Handler()
	r := post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization", "Bearer "+token)
	r.URL.RawQuery = "access_token=" + token
	if w := do(h, r); w.Code != http.StatusBadRequest ||
		!strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_request"`) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestSessionBelongsToItsUser(t *testing.T) {
	t.Parallel()
	aki, akiHash := NewToken()
	spare, spareHash := NewToken()
	bo, boHash := NewToken()
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: newAuth(t, AuthOptions{Tokens: []Token{
		{Name: "laptop", Hash: akiHash, User: "aki", Tenant: "acme"},
		{Name: "phone", Hash: spareHash, User: "aki", Tenant: "acme"},
		{Name: "other", Hash: boHash, User: "aki", Tenant: "other"},
	}})}).Handler()
	id := openSession(t, h, "Authorization", "Bearer "+aki)
	for token, want := range map[string]int{aki: http.StatusOK, spare: http.StatusOK, bo: http.StatusNotFound} {
		w := do(h, post(withSessions, message(withSessions, 1, "tools/list", `{}`), "Authorization", "Bearer "+token,
			"Mcp-Session-Id", id))
		if w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
}

// TestStreamsEndWithTheirTokens: a token must not open for longer than it is valid.
func TestStreamsEndWithTheirTokens(t *testing.T) {
	t.Parallel()
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				token, hash := NewToken()
				h := newServer(t, offer(t, serveEverything, "x"), nil,
					&Options{Auth: newAuth(t, AuthOptions{Tokens: []Token{
						{Name: "ci", Hash: hash, Expires: time.Now().Add(time.Minute)},
					}})}).Handler()
				headers := []string{"Authorization", "Bearer " + token}
				r := post(version, message(version, 1, methodListen, `{"notifications":{"toolsListChanged":true}}`),
					headers...)
				if version < sessionless {
					r = post(version, "", append(headers, "Mcp-Session-Id", openSession(t, h, headers...))...)
					r.Method = http.MethodGet
				}
				began := time.Now()
				do(h, r)
				if took := time.Since(began); took != time.Minute {
					t.Errorf("the stream ended after %v, want a minute", took)
				}
			})
		})
	}
}

func TestAuthOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, hash := NewToken()
	oauth := OAuth{Resource: "https://hako.example.com/mcp", Issuers: []Issuer{{URL: "https://issuer.example.com"}}}
	with := func(change func(*OAuth)) AuthOptions {
		changed := oauth
		changed.Issuers = []Issuer{oauth.Issuers[0]}
		change(&changed)
		return AuthOptions{OAuth: &changed}
	}
	for name, options := range map[string]AuthOptions{
		"nothing":             {},
		"no name":             {Tokens: []Token{{Hash: hash}}},
		"no hash":             {Tokens: []Token{{Name: "ci"}}},
		"hash without kind":   {Tokens: []Token{{Name: "ci", Hash: strings.TrimPrefix(hash, "sha256:")}}},
		"short hash":          {Tokens: []Token{{Name: "ci", Hash: hash[:len(hash)-2]}}},
		"a token for a hash":  {Tokens: []Token{{Name: "ci", Hash: "hako_abc"}}},
		"scope with space":    {Tokens: []Token{{Name: "ci", Hash: hash}}, Scopes: []string{"a b"}},
		"no issuer":           with(func(o *OAuth) { o.Issuers = nil }),
		"no resource":         with(func(o *OAuth) { o.Resource = "" }),
		"plain resource":      with(func(o *OAuth) { o.Resource = "http://hako.example.com/mcp" }),
		"resource with query": with(func(o *OAuth) { o.Resource += "?x" }),
		"plain issuer":        with(func(o *OAuth) { o.Issuers[0].URL = "http://issuer.example.com" }),
		"issuer without URL":  with(func(o *OAuth) { o.Issuers[0].URL = "" }),
		"plain keys":          with(func(o *OAuth) { o.Issuers[0].Keys = "http://issuer.example.com/keys" }),
	} {
		if _, err := NewAuth(options); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "hako_abc") {
			t.Errorf("%s: the error holds a token: %v", name, err)
		}
	}
	if _, err := NewAuth(AuthOptions{OAuth: &oauth}); err != nil {
		t.Error(err)
	}
}

func TestCheckExposure(t *testing.T) {
	t.Parallel()
	_, hash := NewToken()
	auth := newAuth(t, AuthOptions{Tokens: []Token{{Name: "ci", Hash: hash}}})
	for addr, safe := range map[string]bool{
		"127.0.0.1:8420": true, "localhost:0": true, "[::1]:8420": true, "127.9.9.9:1": true,
		":8420": false, "0.0.0.0:8420": false, "[::]:8420": false, "192.168.1.5:8420": false,
		"hako.example.com:80": false,
	} {
		if err := CheckExposure(addr, nil); (err == nil) != safe {
			t.Errorf("%s without authentication: %v", addr, err)
		} else if err != nil && !strings.Contains(err.Error(), "hako token new") {
			t.Errorf("%s: the error does not say what to do: %v", addr, err)
		}
		if err := CheckExposure(addr, auth); err != nil {
			t.Errorf("%s with authentication: %v", addr, err)
		}
	}
	if err := CheckExposure("8420", auth); err == nil {
		t.Error("an address without a port: no error")
	}
}

// TestTokensExpireByTheClockOfTheServer: that of the store, and not the machine's, also after a reload.
func TestTokensExpireByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-2 * time.Hour) // the machine is ahead
	token, hash := NewToken()
	options := func() *Options {
		return &Options{Hosts: []string{"hako.example.com"}, Auth: newAuth(t, AuthOptions{
			Tokens: []Token{{Name: "ci", Hash: hash, Expires: now.Add(time.Hour)}},
			OAuth: &OAuth{Resource: resourceURL, Issuers: []Issuer{{URL: issuerURL}},
				Client: &http.Client{Transport: newAuthority()}},
		})}
	}
	first := options()
	first.Now = func() time.Time { return now }
	s := newServer(t, offer(t, serveEverything, "x"), nil, first)
	signed := sign(map[string]any{"exp": now.Add(time.Hour).Unix(), "iat": now.Unix()})
	for _, bearer := range []string{token, signed} {
		for _, step := range []struct {
			pass time.Duration
			want int
		}{{0, http.StatusOK}, {2 * time.Hour, http.StatusUnauthorized}, {-2 * time.Hour, http.StatusOK}} {
			now = now.Add(step.pass)
			if w := do(s.Handler(), withToken(bearer)); w.Code != step.want {
				t.Errorf("%.8s after %s: %d %s", bearer, step.pass, w.Code, w.Body)
			}
		}
		put, err := s.Reconfigure(options())
		if err != nil {
			t.Fatal(err)
		}
		put()
	}
}
