package credential

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/secret"
)

// online returns a Broker whose authorization server is reached over a network.
func online(t *testing.T, change func(*Spec)) (*Broker, *authServer, string) {
	t.Helper()
	s := newAuthServer(t)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	spec := freeeSpec(server.URL)
	if change != nil {
		change(&spec)
	}
	dir := t.TempDir()
	return newBroker(t, options(dir, spec)), s, dir
}

// web has its own connections, because httptest.Server.Close closes those of http.DefaultTransport, including
// connections of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// browse requests a page like a browser and returns its body.
func browse(t *testing.T, url string) (status int, body string) {
	response, err := web.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(page)
}

func TestConnectInBrowser(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{Freee, OAuth2} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			b, s, dir := online(t, func(spec *Spec) {
				spec.Provider = provider
				spec.Scopes = []string{"read",
					"write"}
			})
			status, err := b.Connect(t.Context(), "acme", "freee", func(url string) {
				if code, page := browse(t, url); code != 200 || !strings.Contains(page, "Thank you") ||
					!strings.Contains(page, "ありがとう") {
					t.Errorf("%d %s", code, page)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if status.State != Ready || status.Tenant != "acme" || time.Until(status.Expires) < 5*time.Hour {
				t.Errorf("status %+v", status)
			}
			if got := token(t, b, "acme"); got != "access-0001" {
				t.Errorf("got %s", got)
			}
			checkConsent(t, provider, s.posts[0])
			checkEncrypted(t, dir)
		})
	}
}

// checkConsent checks the token request.
func checkConsent(t *testing.T, provider string, form url.Values) {
	redirect, err := url.Parse(form.Get("redirect_uri"))
	if err != nil || redirect.Hostname() != "127.0.0.1" || redirect.Path != "/callback" {
		t.Errorf("redirect_uri %v, %v", redirect, err)
	}
	if pkce := form.Get("code_verifier") != ""; pkce != (provider == OAuth2) {
		t.Errorf("PKCE is %v", pkce)
	}
}

// checkEncrypted checks that the store contains no token in plain text.
func checkEncrypted(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "hako.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"access-", "refresh-", "1234", "client-secret"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s holds %q", file, word)
			}
		}
	}
	info, err := os.Stat(filepath.Join(dir, "secrets.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v", info.Mode(), err)
	}
}

func TestAuthorizationURL(t *testing.T) {
	t.Parallel()
	spec := Spec{Provider: Freee, ClientID: "client", ClientSecret: secret.Source{Env: "X"}}
	b := newBroker(t, options(t.TempDir(), spec))
	consent, err := b.Consent(t.Context(), "", "freee", "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(consent.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	want := url.Values{"response_type": {"code"}, "client_id": {"client"},
		"redirect_uri": {"urn:ietf:wg:oauth:2.0:oob"}, "prompt": {"select_company"}, "state": query["state"]}
	u.RawQuery = ""
	if u.String() != "https://accounts.secure.freee.co.jp/public_api/authorize" || query.Encode() != want.Encode() ||
		len(query.Get("state")) < 20 {
		t.Errorf("%s ? %v, want %v", u, query, want)
	}
	b = newBroker(t, options(t.TempDir(), Spec{Provider: OAuth2, ClientID: "client", AuthorizeURL: "https://a.example",
		TokenURL: "https://a.example"}))
	if consent, err = b.Consent(t.Context(), "", "freee", "http://127.0.0.1:1/callback"); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(consent.verifier))
	if !strings.Contains(consent.URL, "code_challenge="+base64.RawURLEncoding.EncodeToString(sum[:])+"&code_challenge_method=S256") {
		t.Errorf("%s has not the challenge of %s", consent.URL, consent.verifier)
	}
}

// TestRedirectIsChecked: only the first redirect with the right state counts.
func TestRedirectIsChecked(t *testing.T) {
	t.Parallel()
	b, s, _ := online(t, nil)
	var redirect, state string
	status, err := b.Connect(t.Context(), "", "freee", func(address string) {
		u, _ := url.Parse(address)
		redirect, state = u.Query().Get("redirect_uri"), u.Query().Get("state")
		for _, query := range []string{"/../favicon.ico", "", "?code=attackers-code",
			"?code=attackers-code&state=guess", "?state=&code=attackers-code", "/more?code=x&state=" + state} {
			if code, page := browse(t, redirect+query); code < 400 || strings.Contains(page, "attackers") {
				t.Errorf("%s: %d %s", query, code, page)
			}
		}
		browse(t, address)
		if code, _ := browse(t, redirect+"?code=second&state="+state); code != http.StatusBadRequest {
			t.Errorf("the state works twice: %d", code)
		}
	})
	if err != nil || status.State != Ready || len(s.posts) != 1 || s.posts[0].Get("code") != "code-0" {
		t.Errorf("%+v, %v, %v", status, err, s.posts)
	}
	if _, err := web.Get(redirect); err == nil {
		t.Error("the redirect's address still listens")
	}
}

func TestConsentThatIsNotGiven(t *testing.T) {
	t.Parallel()
	b, s, _ := online(t, nil)
	_, err := b.Connect(t.Context(), "", "freee", func(address string) {
		u, _ := url.Parse(address)
		browse(t, u.Query().Get("redirect_uri")+"?error=access_denied%1b[31m&state="+u.Query().Get("state"))
	})
	if err == nil || !strings.Contains(err.Error(), "the consent was not given: access_denied␦[31m") ||
		len(s.posts) != 0 {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := b.Connect(ctx, "", "freee", func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if got := token(t, b, ""); !strings.Contains(got, "the operator runs hako connect freee") {
		t.Errorf("got %s", got)
	}
}

func TestConnectByCode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		paste func(address string) string
		want  string
	}{
		"code":    {func(string) string { return " code-0\n" }, ""},
		"address": {func(a string) string { return a }, ""},
		"wrong address": {func(a string) string { return strings.Replace(a, "state=", "state=x", 1) },
			"does not belong to this consent"},
		"nothing":    {func(string) string { return "\n" }, "contains no code"},
		"wrong code": {func(string) string { return "code-9" }, "invalid_grant"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, _ := online(t, nil)
			consent, err := b.Consent(t.Context(), "", "freee", "")
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: web.Transport, CheckRedirect: func(*http.Request,
				[]*http.Request) error {
				return http.ErrUseLastResponse
			}}
			response, err := client.Get(consent.URL)
			if err != nil {
				t.Fatal(err)
			}
			address := response.Header.Get("Location")
			status, err := consent.Exchange(t.Context(),
				test.paste(strings.Replace(address, "urn:ietf:wg:oauth:2.0:oob", "http://127.0.0.1:1/", 1)))
			if test.want == "" && (err != nil || status.State != Ready) ||
				test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%+v, %v, want %q", status, err, test.want)
			}
		})
	}
}

// TestConnectAgain: an ended connection works again after a new consent, also in a running process.
func TestConnectAgain(t *testing.T) {
	t.Parallel()
	b, s, _ := online(t, nil)
	storeConnection(t, b, "", -7*time.Hour, -time.Hour)
	s.refresh = "another"
	if got := token(t, b, ""); !strings.Contains(got, "has to be connected again") {
		t.Fatal(got)
	}
	other := newBroker(t, b.options)
	if _, err := other.Connect(t.Context(), "", "freee", func(url string) { browse(t, url) }); err != nil {
		t.Fatal(err)
	}
	c, err := b.Credential(t.Context(), "", "freee")
	if err != nil || c.Value != "Bearer access-0001" || c.Account == "first" {
		t.Errorf("%+v, %v", c, err)
	}
	if found, err := other.Remove(t.Context(), "", "freee"); !found || err != nil {
		t.Errorf("removed: %v, %v", found, err)
	}
	if got := token(t, b, ""); !strings.Contains(got, "is not connected") {
		t.Errorf("after its removal: %s", got)
	}
	if found, err := other.Remove(t.Context(), "", "freee"); found || err != nil {
		t.Errorf("removed twice: %v, %v", found, err)
	}
}

func TestNothingToConsentTo(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Options{Credentials: map[string]Spec{"kot": {Token: secret.Source{Env: "X"}}}})
	if _, err := b.Connect(t.Context(), "", "kot", nil); !errors.Is(err, ErrNotConnectable) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Connect(t.Context(), "", "none", nil); err == nil ||
		!strings.Contains(err.Error(), "set credentials.none") {
		t.Errorf("got %v", err)
	}
}
