package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// backendFunc calls f for every call.
func backendFunc(f func()) backend {
	return func(context.Context, *catalog.Invocation) (*abi.Response, error) {
		f()
		return &abi.Response{}, nil
	}
}

func TestCSRF(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	calls := 0
	w.offer("tools", backendFunc(func() { calls++ }), manifest.Tool{Name: "echo"})
	other := w.as(console.Admin)
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"the page's own": {func(*http.Request) {}, http.StatusOK},
		"no script of a browser": {func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") },
			http.StatusOK},
		"no token": {func(r *http.Request) { r.Header.Del("X-Hako-CSRF") }, http.StatusForbidden},
		"wrong token": {func(r *http.Request) { r.Header.Set("X-Hako-CSRF", "guess") },
			http.StatusForbidden},
		"token of another session": {func(r *http.Request) { r.Header.Set("X-Hako-CSRF", other.csrf) },
			http.StatusForbidden},
		"token in the query": {func(r *http.Request) { r.Header.Del("X-Hako-CSRF"); r.URL.RawQuery = "csrf=x" },
			http.StatusBadRequest},
		"foreign origin": {func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example.com")
			r.Header.Del("Sec-Fetch-Site")
		}, http.StatusForbidden},
		"foreign origin that names the host": {func(r *http.Request) {
			r.Header.Set("Origin", "https://127.0.0.1:8420.evil.example.com")
			r.Header.Del("Sec-Fetch-Site")
		}, http.StatusForbidden},
		"origin null": {func(r *http.Request) {
			r.Header.Set("Origin",
				"null")
			r.Header.Del("Sec-Fetch-Site")
		}, http.StatusForbidden},
		"cross-site": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			http.StatusForbidden},
		"another port of this machine": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			http.StatusForbidden},
		"form": {func(r *http.Request) {
			r.Header.Set("Content-Type",
				"application/x-www-form-urlencoded")
		}, http.StatusBadRequest},
		"form with files": {func(r *http.Request) {
			r.Header.Set("Content-Type",
				"multipart/form-data; boundary=x")
		}, http.StatusBadRequest},
		"text": {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
			http.StatusBadRequest},
		"no type": {func(r *http.Request) { r.Header.Del("Content-Type") },
			http.StatusBadRequest},
		"name of somebody else (rebinding)": {func(r *http.Request) { r.Host = "rebound.example.com:8420" },
			http.StatusForbidden},
	} {
		before := calls
		b := w.as(console.Admin)
		got := b.do("POST", "tools/echo/call", map[string]any{"arguments": map[string]any{}}, test.change)
		if got.status != test.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, test.status)
		}
		if made := calls > before; made != (test.status == http.StatusOK) {
			t.Errorf("%s: was the tool called? %t", name, made)
		}
	}
}

// TestCrossSiteReads: pages of others cannot have data read for them either, and nobody frames the console.
func TestCrossSiteReads(t *testing.T) {
	t.Parallel()
	b := newWorld(t, nil).as(console.Viewer)
	for _, site := range []string{"cross-site", "same-site"} {
		if got := b.do("GET", "overview", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) }); got.code() != "csrf" {
			t.Errorf("%s: %d %s", site, got.status, got.body)
		}
	}
	for _, path := range []string{"overview", "session", "nowhere", "/console/", "/console/main.js", "/console/nothing"} {
		h := b.get(path).header
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.Contains(h.Get(name), want) {
				t.Errorf("%s: %s is %q, want %s", path, name, h.Get(name), want)
			}
		}
		if policy := h.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other sites may read it", path)
		}
	}
}
