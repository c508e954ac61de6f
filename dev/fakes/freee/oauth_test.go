package freee

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const redirect = "http://127.0.0.1:9/callback"

func post(t *testing.T, fake *Server, form url.Values) (status int, body map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/public_api/token",
		strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	fake.ServeHTTP(w, r)
	return w.Code, decode[map[string]any](t, w.Body.Bytes())
}

// consent walks through the page as a client that is no browser, and returns the code.
func consent(t *testing.T, fake *Server, more string) string {
	t.Helper()
	w := fetch(t, fake, "/public_api/authorize?response_type=code&client_id=freee-client&state=s%2F1&redirect_uri="+
		url.QueryEscape(redirect)+more, "")
	location, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusFound {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	if location.Query().Get("state") != "s/1" || !strings.HasPrefix(location.String(), redirect) {
		t.Errorf("redirected to %s", location)
	}
	return location.Query().Get("code")
}

func codeForm(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {"freee-client"},
		"client_secret": {"freee-secret"}, "code": {code}, "redirect_uri": {redirect}}
}

func refreshForm(token any) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {"freee-client"}, "client_secret": {"freee-secret"},
		"refresh_token": {token.(string)}}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 9, 0, 0, 0, jst)
	fake := New(&Options{Now: func() time.Time { return now }})
	code := consent(t, fake, "&company_id=67890")
	status, first := post(t, fake, codeForm(code))
	if status != 200 || first["company_id"] != "67890" || first["expires_in"] != 21600.0 ||
		first["token_type"] != "bearer" {
		t.Fatalf("%d %v", status, first)
	}
	if status, body := post(t, fake, codeForm(code)); status != 401 || body["error"] != "invalid_grant" {
		t.Errorf("the code again: %d %v", status, body)
	}
	if w := fetch(t, fake, "/hr/api/v1/users/me", first["access_token"].(string)); w.Code != 200 {
		t.Errorf("first access token: %d", w.Code)
	}
	status, second := post(t, fake, refreshForm(first["refresh_token"]))
	if status != 200 {
		t.Fatalf("refresh: %d %v", status, second)
	}
	if w := fetch(t, fake, "/hr/api/v1/users/me", first["access_token"].(string)); w.Code != 401 ||
		!strings.Contains(w.Body.String(), "expired_access_token") {
		t.Errorf("the replaced access token: %d %s", w.Code, w.Body)
	}
	if status, body := post(t, fake, refreshForm(first["refresh_token"])); status != 401 ||
		body["error"] != "invalid_grant" {
		t.Errorf("the refresh token again: %d %v", status, body)
	}
	now = now.Add(6 * time.Hour)
	if w := fetch(t, fake, "/hr/api/v1/users/me", second["access_token"].(string)); w.Code != 401 {
		t.Errorf("after six hours: %d", w.Code)
	}
	now = now.Add(90 * 24 * time.Hour)
	if status, _ := post(t, fake, refreshForm(second["refresh_token"])); status != 401 {
		t.Errorf("after 90 days: %d", status)
	}
}

func TestTokenRefusals(t *testing.T) {
	t.Parallel()
	fake := New(nil)
	with := func(form url.Values, name, value string) url.Values {
		form.Set(name, value)
		return form
	}
	for name, test := range map[string]struct {
		form   url.Values
		status int
		code   string
	}{
		"another secret": {with(codeForm("x"), "client_secret", "guess"), 401, "invalid_client"},
		"another redirect": {with(codeForm(consent(t, fake, "")), "redirect_uri", "http://127.0.0.1:8/"), 401,
			"invalid_grant"},
		"made-up code": {codeForm("x"), 401, "invalid_grant"},
		"other grant":  {with(codeForm("x"), "grant_type", "password"), 400, "unsupported_grant_type"},
	} {
		if status, body := post(t, fake, test.form); status != test.status || body["error"] != test.code {
			t.Errorf("%s: %d %v, want %d %s", name, status, body, test.status, test.code)
		}
	}
	if w := fetch(t, fake, "/public_api/authorize?response_type=code&client_id=other&redirect_uri="+redirect, ""); w.Code != 400 {
		t.Errorf("another client: %d", w.Code)
	}
}

// TestAuthorizePage holds what a person sees: the companies, a way to refuse, and the code where nothing can be
// redirected to.
func TestAuthorizePage(t *testing.T) {
	t.Parallel()
	fake := New(nil)
	page := func(query string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"/public_api/authorize?response_type=code&client_id=freee-client&"+query, nil)
		r.Header.Set("Accept", "text/html,*/*")
		w := httptest.NewRecorder()
		fake.ServeHTTP(w, r)
		return w
	}
	if w := page("prompt=select_company&redirect_uri=" + redirect); w.Code != 200 ||
		!strings.Contains(w.Body.String(), "company_id=67890") {
		t.Errorf("no choice of companies: %d %s", w.Code, w.Body)
	}
	if w := page("deny=1&redirect_uri=" + redirect); !strings.Contains(w.Header().Get("Location"), "error=access_denied") {
		t.Errorf("refused: %d %s", w.Code, w.Header())
	}
	if w := page("company_id=12345&redirect_uri=" + url.QueryEscape(outOfBand)); w.Code != 200 ||
		!strings.Contains(w.Body.String(), "<code>code-") {
		t.Errorf("out of band: %d %s", w.Code, w.Body)
	}
}
