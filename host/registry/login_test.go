package registry

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTokenServers: the operator's credential goes to the registry's own site, and elsewhere only if that is configured.
func TestTokenServers(t *testing.T) {
	t.Parallel()
	sent := 0
	transport := func(registry string, servers ...string) http.RoundTripper {
		return &loginTransport{registry: registry, tokenServers: servers,
			base: roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			})}
	}
	basic := func(r *http.Request) { r.SetBasicAuth("user", "password") }
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") }
	none := func(*http.Request) {}
	for name, test := range map[string]struct {
		registry, at string
		login        func(*http.Request)
		servers      []string
		want         bool
	}{
		"the registry":              {"registry.example.com", "https://registry.example.com/token", basic, nil, true},
		"its site":                  {"registry.example.com", "https://auth.example.com/token", basic, nil, true},
		"Docker Hub":                {"docker.io", "https://auth.docker.io/token", basic, nil, true},
		"another site":              {"registry.example.com", "https://tokens.evil.test/", basic, nil, false},
		"another site, OAuth":       {"registry.example.com", "https://tokens.evil.test/", form, nil, false},
		"anonymously":               {"registry.example.com", "https://tokens.evil.test/", none, nil, true},
		"an upload with its token":  {"registry.example.com", "https://store.test/upload", bearer, nil, true},
		"a neighbour of a provider": {"mine.github.io", "https://evil.github.io/token", basic, nil, false},
		"a public suffix":           {"example.co.jp", "https://evil.co.jp/", basic, nil, false},
		"an end like it":            {"example.com", "https://notexample.com/", basic, nil, false},
		"an address":                {"192.0.2.1", "https://192.0.2.2/", basic, nil, false},
		"a neighbour's address":     {"10.0.0.1:5000", "https://11.0.0.1:5000/", basic, nil, false},
		"this machine":              {"localhost:5000", "http://localhost:5001/", basic, nil, false},
		"its own port":              {"localhost:5000", "http://localhost:5000/", basic, nil, true},
		"configured":                {"registry.example.com", "https://sso.test/", basic, []string{"sso.test"}, true},
		"configured with the port":  {"registry.example.com", "https://sso.test:8443/", basic, []string{"sso.test:8443"}, true},
		"on another port":           {"registry.example.com", "https://sso.test:8443/", basic, []string{"sso.test"}, false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", test.at, strings.NewReader("password=x"))
		if err != nil {
			t.Fatal(err)
		}
		before := sent
		test.login(r)
		response, err := transport(test.registry, test.servers...).RoundTrip(r)
		var refused *errTokenServer
		if got := sent > before; got != test.want || test.want != (err == nil) || errors.As(err, &refused) == test.want {
			t.Errorf("%s: sent %v, %v; want %v", name, got, err, test.want)
		}
		if err == nil {
			_ = response.Body.Close()
		} else if !strings.Contains(err.Error(), "registries."+test.registry+".tokenServers") {
			t.Errorf("%s: %v has no remedy", name, err)
		}
	}
}

// TestMaskedErrors: what was sent, by this request or an earlier one, is in no error.
func TestMaskedErrors(t *testing.T) {
	t.Parallel()
	const password, token = `open "sesame"`, "made-up-token"
	pair := base64.StdEncoding.EncodeToString([]byte("user:" + password))
	transport := &loginTransport{registry: "a.example", base: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 401, Body: http.NoBody}, nil
	})}
	c := &Client{logins: []*loginTransport{{}, transport}}
	for _, login := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) },
		func(r *http.Request) { r.SetBasicAuth("user", password) },
		func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") },
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://a.example/", strings.NewReader("refresh_token=identity&password="))
		if err != nil {
			t.Fatal(err)
		}
		login(r)
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	for _, repeated := range []string{"Bearer " + token, "Basic " + pair, password, strconv.Quote(password), url.QueryEscape(password), "identity"} {
		text := c.readable("r", Reference{}, errors.New("a user said: "+repeated)).Error()
		for _, secret := range []string{token, pair, "sesame", "identity"} {
			if strings.Contains(text, secret) || !strings.HasPrefix(text, "r: a user said: ") {
				t.Errorf("%s: %s", repeated, text)
			}
		}
	}
}

// TestManifestKeys: a manifest that two programs read differently is refused.
func TestManifestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"layers": [], "config": {}, "annotations": {"OS": "x", "Digest": "y"}}`: "",
		`{"layers": [], "layers": []}`:                                            "every key once",
		`{"layers": [{"size": 1, "size": 2}]}`:                                    "every key once",
		`{"layers": [], "Layers": []}`:                                            `the key "Layers" in another case`,
		`{"Layers": []}`:                                                          `the key "Layers" in another case`,
		`{"manifests": [{"Digest": "sha256:0"}]}`:                                 `"Digest"`,
		`{"config": {"mediatype": "x"}}`:                                          `"mediatype"`,
		`{"layers": [{"SIZE": 1}], "unknown": "a"}`:                               `"SIZE"`,
	} {
		if _, err := parseManifest([]byte(text)); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
