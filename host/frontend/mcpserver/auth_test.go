package mcpserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

func newAuth(t *testing.T, options auth.Options) *auth.Auth {
	t.Helper()
	opened, err := auth.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// TestFailedLogins: refused tokens are told, with what is proven of whose they are, and not without end. No token is no
// attempt.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	old, oldHash := bearer.New()
	narrow, narrowHash := bearer.New()
	var told []FailedLogin
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{
		LoginFailed: func(f FailedLogin) { told = append(told, f) },
		Auth: newAuth(t, auth.Options{Scopes: []string{"tools"}, Tokens: []bearer.Token{
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
	good, goodHash := bearer.New()
	old, oldHash := bearer.New()
	narrow, narrowHash := bearer.New()
	unknown, _ := bearer.New()
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: newAuth(t, auth.Options{
		Scopes: []string{"tools", "more"},
		Tokens: []bearer.Token{
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
	token, hash := bearer.New()
	h := newServer(t, offer(t, nil, "x"), nil,
		&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash}}})}).Handler()
	r := post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`), "Authorization", "Bearer "+token)
	r.URL.RawQuery = "access_token=" + token
	if w := do(h, r); w.Code != http.StatusBadRequest ||
		!strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_request"`) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestSessionBelongsToItsUser(t *testing.T) {
	t.Parallel()
	aki, akiHash := bearer.New()
	spare, spareHash := bearer.New()
	bo, boHash := bearer.New()
	h := newServer(t, offer(t, serveEverything, "x"), nil, &Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
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
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				token, hash := bearer.New()
				h := newServer(t, offer(t, serveEverything, "x"), nil,
					&Options{Auth: newAuth(t, auth.Options{Tokens: []bearer.Token{
						{Name: "ci", Hash: hash, Expires: time.Now().Add(time.Minute)},
					}})}).Handler()
				headers := []string{"Authorization", "Bearer " + token}
				r := post(version, message(version, 1, transport.MethodListen,
					`{"notifications":{"toolsListChanged":true}}`),
					headers...)
				if version < withoutSessions {
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

// TestTokensExpireByTheClock: tokens expire by the clock of Auth, and not by the machine's.
func TestTokensExpireByTheClock(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-2 * time.Hour) // the machine is ahead
	token, hash := bearer.New()
	options := func() *Options {
		return &Options{Hosts: []string{"hako.example.com"}, Auth: newAuth(t, auth.Options{
			Tokens: []bearer.Token{{Name: "ci", Hash: hash, Expires: now.Add(time.Hour)}},
			OAuth: &auth.OAuth{Resource: resourceURL, Issuers: []auth.Issuer{{URL: issuerURL}},
				Client: &http.Client{Transport: newAuthority()}},
			Now: func() time.Time { return now },
		})}
	}
	s := newServer(t, offer(t, serveEverything, "x"), nil, options())
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
