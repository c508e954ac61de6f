package authserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/internal/attempts"
)

func TestLogin(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	got := w.authorize(newBrowser(), c)
	if got.Get("state") != c.state || got.Get("iss") != "https://hako.example.com" || got.Get("code") == "" {
		t.Fatalf("the client gets %v", got)
	}
	response := c.exchange(w.Server, got.Get("code"), nil)
	if cache := response.Header.Get("Cache-Control"); cache != "no-store" {
		t.Errorf("the tokens may be cached: %q", cache)
	}
	access, refresh := tokensOf(t, response)
	by, err := w.Verify(t.Context(), access)
	if err != nil || by == nil || by.User != "aki@example.com" || !slices.Equal(by.Groups, []string{"staff"}) ||
		!slices.Equal(by.Scopes, []string{"tools"}) || by.Issuer != providerURL || time.Until(by.Expires) > accessLifetime {
		t.Errorf("the token is of %+v, %v", by, err)
	}
	if !w.Owns(access) || isValid(t, w.Server, refresh) || isValid(t, w.Server, got.Get("code")) {
		t.Error("a refresh token or a code opens the endpoint")
	}
	for _, secret := range []string{access, refresh, got.Get("code"), "provider-access", "provider-refresh"} {
		for _, table := range []string{"oauth_token", "oauth_grant", "oauth_login"} {
			if dump := w.dump(table); strings.Contains(dump, secret) {
				t.Errorf("%s holds the secret %s", table, secret)
			}
		}
	}
	next, _ := tokensOf(t, c.refresh(w.Server, refresh, nil))
	if next == access || !isValid(t, w.Server, next) || !isValid(t, w.Server, access) {
		t.Error("the refreshed token is not valid, or the one before is not until its end")
	}
	w.ahead.Store(int64(accessLifetime))
	if isValid(t, w.Server, access) {
		t.Error("the access token does not expire")
	}
	if e := w.events; len(e) != 1 || e[0].Action != Login || e[0].User != "aki@example.com" || e[0].Client != "Test client" {
		t.Errorf("recorded %+v", e)
	}
}

func TestScopes(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.OptionalScopes = []string{"files", "mail"} })
	c := w.register(appURL)
	for asked, want := range map[string]string{
		"": "tools", "tools": "tools", "files": "tools files", "mail files admin openid": "tools files mail",
	} {
		b := newBrowser()
		response := b.get(w.Server, c.query(url.Values{"scope": {asked}}))
		response = b.post(w.Server, consentPath, answer(t, response))
		code := parameters(t, b.get(w.Server, w.provider.login(t, response.Header.Get("Location"))), appURL).Get("code")
		m := members(t, c.exchange(w.Server, code, nil))
		by, err := w.Verify(t.Context(), m["access_token"].(string))
		if err != nil || m["scope"] != want || strings.Join(by.Scopes, " ") != want {
			t.Errorf("asked for %q: got %v, the token has %v, want %s", asked, m["scope"], by, want)
		}
	}
}

func TestLoginEnds(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Lifetime = 2 * time.Hour })
	c := w.register(appURL)
	_, refresh := w.login(c)
	w.ahead.Store(int64(90 * time.Minute))
	access, refresh := tokensOf(t, c.refresh(w.Server, refresh, nil))
	w.ahead.Store(int64(2*time.Hour + time.Second))
	if response := c.refresh(w.Server, refresh, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("after the login's lifetime a refresh gets %s", response.Status)
	}
	if isValid(t, w.Server, access) {
		t.Error("an access token outlives the login")
	}
}

func TestMetadata(t *testing.T) {
	w := newWorld(t)
	response := newBrowser().get(w.Server, MetadataPath)
	m := members(t, response)
	for name, want := range map[string]any{
		"issuer": "https://hako.example.com", "authorization_endpoint": "https://hako.example.com/oauth/authorize",
		"token_endpoint":                                 "https://hako.example.com/oauth/token",
		"registration_endpoint":                          "https://hako.example.com/oauth/register",
		"revocation_endpoint":                            "https://hako.example.com/oauth/revoke",
		"authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true,
	} {
		if m[name] != want {
			t.Errorf("%s is %v, want %v", name, m[name], want)
		}
	}
	if methods, _ := m["code_challenge_methods_supported"].([]any); len(methods) != 1 || methods[0] != "S256" {
		t.Errorf("challenge methods: %v", methods)
	}
	if origin := response.Header.Get("Access-Control-Allow-Origin"); origin != "*" {
		t.Errorf("clients in browsers cannot read it: %q", origin)
	}
}

func TestConsentPage(t *testing.T) {
	w := newWorld(t)
	c := w.register(loopbackURL)
	for language, want := range map[string]string{
		"": "Let this program use hako?", "ja-JP,ja;q=0.9": "このプログラムに hako の利用を許可しますか？",
	} {
		r := httptest.NewRequest(http.MethodGet, c.query(nil), nil)
		r.Header.Set("Accept-Language", language)
		text := body(t, newBrowser().send(w.Server, r))
		for _, part := range []string{want, "Test client", "127.0.0.1", "id.example.com"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q: the page does not show %q", language, part)
			}
		}
	}
	b := newBrowser()
	form := answer(t, b.get(w.Server, c.query(nil)))
	form.Set("answer", "no")
	got := parameters(t, b.post(w.Server, consentPath, form), loopbackURL)
	if got.Get("error") != "access_denied" || got.Get("state") != c.state || got.Get("iss") == "" {
		t.Errorf("after a refusal the client gets %v", got)
	}
}

// TestRefusalPage: a refusal says why in the reader's language.
func TestRefusalPage(t *testing.T) {
	w := newWorld(t)
	c := w.register(loopbackURL)
	for language, want := range map[string]string{
		"": "The client is not registered here (client_id)", "ja": "クライアントが登録されていません (client_id)",
	} {
		r := httptest.NewRequest(http.MethodGet, c.query(url.Values{"client_id": {"hako-client-X"}}), nil)
		r.Header.Set("Accept-Language", language)
		if text := body(t, newBrowser().send(w.Server, r)); !strings.Contains(text, want) {
			t.Errorf("%q: the page does not show %q: %s", language, want, text)
		}
	}
}

// TestAccounts: who may log in, and what they are called.
func TestAccounts(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Provider.Require = map[string][]string{"hd": {"example.com", "example.org"}, "groups": {"staff"}}
		o.Provider.TenantClaim = "org"
	})
	c := w.register(appURL)
	for name, test := range map[string]struct {
		claims  map[string]any
		allowed bool
	}{
		"all there":         {map[string]any{"org": "tokyo"}, true},
		"another value":     {map[string]any{"org": "tokyo", "hd": "example.org"}, true},
		"another domain":    {map[string]any{"org": "tokyo", "hd": "evil.example"}, false},
		"no domain":         {map[string]any{"org": "tokyo", "hd": nil}, false},
		"domain as a list":  {map[string]any{"org": "tokyo", "hd": []string{"evil.example", "example.com"}}, true},
		"no group":          {map[string]any{"org": "tokyo", "groups": []string{}}, false},
		"no tenant":         {map[string]any{}, false},
		"address unproven":  {map[string]any{"org": "tokyo", "email_verified": false}, false},
		"no address":        {map[string]any{"org": "tokyo", "email": nil}, false},
		"hidden characters": {map[string]any{"org": "tokyo", "email": "aki\u202e@example.com"}, false},
		"another audience":  {map[string]any{"org": "tokyo", "aud": "other"}, false},
		"another issuer":    {map[string]any{"org": "tokyo", "iss": "https://evil.example"}, false},
		"another nonce":     {map[string]any{"org": "tokyo", "nonce": "x"}, false},
		"expired":           {map[string]any{"org": "tokyo", "exp": time.Now().Add(-time.Hour).Unix()}, false},
	} {
		w.provider.claims = test.claims
		w.events = nil
		b := newBrowser()
		w.consents, w.failures = attempts.New(), attempts.New()
		got := w.authorize(b, c)
		if got.Has("code") != test.allowed || !test.allowed && got.Get("error") == "" {
			t.Errorf("%s: the client gets %v", name, got)
		}
		if want := map[bool]string{true: Login, false: Refused}[test.allowed]; len(w.events) != 1 || w.events[0].Action != want {
			t.Errorf("%s: recorded %+v, want %s", name, w.events, want)
		}
	}
}

func TestProviderIsDown(t *testing.T) {
	w := newWorld(t)
	w.provider.down = true
	c, b := w.register(appURL), newBrowser()
	got := parameters(t, b.post(w.Server, consentPath, answer(t, b.get(w.Server, c.query(nil)))), appURL)
	if got.Get("error") != "temporarily_unavailable" {
		t.Errorf("the client gets %v", got)
	}
}

// TestReplicas: each request may go to another replica, and an end counts for all of them.
func TestReplicas(t *testing.T) {
	w := newWorld(t)
	other := w.replica()
	c, b := w.register(appURL), newBrowser()
	response := b.post(other, consentPath, answer(t, b.get(w.Server, c.query(nil))))
	got := parameters(t, b.get(w.Server, w.provider.login(t, response.Header.Get("Location"))), appURL)
	access, refresh := tokensOf(t, c.exchange(other, got.Get("code"), nil))
	if !isValid(t, w.Server, access) || !isValid(t, other, access) {
		t.Fatal("the token is not valid everywhere")
	}
	response = newBrowser().post(w.Server, revokePath, url.Values{"token": {refresh}, "client_id": {c.id}})
	if response.StatusCode != http.StatusOK {
		t.Errorf("revocation: %s", response.Status)
	}
	for name, s := range map[string]*Server{"one": w.Server, "other": other} {
		if !testwait.Until(t, func() bool { return !isValid(t, s, access) }) {
			t.Errorf("replica %s still accepts a revoked token", name)
		}
	}
	if last := w.events[len(w.events)-1]; last.Action != Revoked || last.User != "aki@example.com" {
		t.Errorf("recorded %+v", last)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	good := Options{Resource: resourceURL, Provider: Provider{Issuer: providerURL, ClientID: "hako"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no resource":       func(o *Options) { o.Resource = "" },
		"plain resource":    func(o *Options) { o.Resource = "http://hako.example.com/mcp" },
		"plain issuer":      func(o *Options) { o.Provider.Issuer = "http://id.example.com" },
		"no client":         func(o *Options) { o.Provider.ClientID = "" },
		"all of Google":     func(o *Options) { o.Provider.Issuer = "https://accounts.google.com" },
		"an empty claim":    func(o *Options) { o.Provider.Require = map[string][]string{"hd": nil} },
		"negative lifetime": func(o *Options) { o.Lifetime = -1 },
		"bad proxy":         func(o *Options) { o.TrustedProxies = []string{"x"} },
	} {
		o := good
		change(&o)
		if o.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
