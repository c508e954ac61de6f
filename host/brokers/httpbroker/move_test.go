package httpbroker

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// TestMoved sends requests under addresses that the operator moved to another server.
func TestMoved(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(r.URL.EscapedPath() + "?" + r.URL.RawQuery + " " + r.Header.Get("X-Key")))
	})
	move := func(name, asked, path string) grant.HTTPRule {
		return grant.HTTPRule{Name: name, URL: s.URL + path, Asked: asked}
	}
	b := newBroker(t, &Options{Resolver: names{}}, move("api", "https://api.test/v1/", "/api/"), move("new", "https://api.test/v1/new", "/new"),
		move("any", "https://*.test", ""), grant.HTTPRule{Name: "own", URL: "https://own.test/"})
	for url, want := range map[string]string{
		"https://api.test/v1/a%20b/c?q=1":             "/api/a%20b/c?q=1",
		"https://API.test:443/v1/x/../a":              "/api/a?",
		"https://api.test/v1":                         "/api?",
		"https://api.test/v1/new/a":                   "/new/a?",
		"https://api.test/v2/a":                       "/v2/a?", // under *.test
		"https://x.test/a":                            "/a?",
		"https://x.test/?to=https://api.test/v1/back": "/api/back?",
		s.URL + "/direct":                             "/direct?",
	} {
		head := &abi.HTTPRequest{URL: url, Headers: map[string][]string{"X-Key": {"k"}}}
		a, err := do(t, b, head, "")
		if err != nil || a.body != want+" k" {
			t.Errorf("%s: got %q, want %q (%v)", url, a.body, want, err)
		}
	}
	for url, words := range map[string]string{
		"http://api.test/v1/a":                                "no grant for GET http://api.test/v1/a", // another scheme
		"https://api.test/v1/a?to=https://elsewhere.example/": "no grant for GET https://elsewhere.example/",
		"https://own.test/a":                                  "own.test", // not moved, although *.test is
	} {
		a, err := get(t, b, url)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %q, %v", url, a.body, err)
		}
	}
	only := newBroker(t, nil, grant.HTTPRule{URL: s.URL + "/m", Asked: "https://paths.test/", Paths: []string{"open/**"}})
	if a := mustGet(t, only, "https://paths.test/open/x"); !strings.HasPrefix(a.body, "/m/open/x") {
		t.Errorf("got %q", a.body)
	}
	for _, url := range []string{"https://paths.test/closed", "https://paths.test/open/%2e%2e%2fclosed",
		"https://paths.test/open/..%2fclosed"} {
		if a, err := get(t, only, url); err == nil {
			t.Errorf("%s: got %q", url, a.body)
		}
	}
}
