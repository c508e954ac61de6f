package httpserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLocalOnly: programs on this machine come in, and web pages elsewhere do not, by whatever name they ask.
func TestLocalOnly(t *testing.T) {
	t.Parallel()
	handler := LocalOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), "Remedy.", "https://vendor.example")
	for name, test := range map[string]struct {
		method, host string
		header       []string
		want         string // empty: it comes in
	}{
		"a program":                  {"POST", "127.0.0.1:8431", nil, ""},
		"by name":                    {"DELETE", "LocalHost.:8431", nil, ""},
		"IPv6":                       {"GET", "[::1]:8431", nil, ""},
		"the page itself":            {"POST", "localhost:1", []string{"Origin", "http://localhost:1", "Sec-Fetch-Site", "same-origin"}, ""},
		"typed by a person":          {"GET", "localhost:1", []string{"Sec-Fetch-Site", "none"}, ""},
		"a link that is followed":    {"GET", "localhost:1", []string{"Sec-Fetch-Site", "cross-site"}, ""},
		"a WebSocket of a program":   {"GET", "localhost:1", []string{"Upgrade", "websocket"}, ""},
		"a vendor's client":          {"GET", "localhost:1", []string{"Upgrade", "websocket", "Origin", "https://vendor.example"}, ""},
		"rebinding":                  {"GET", "evil.example:80", nil, "Remedy."},
		"rebinding below localhost":  {"GET", "localhost.evil.example", nil, "Remedy."},
		"rebinding, the same origin": {"POST", "evil.example", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, "Remedy."},
		"no host":                    {"POST", "", nil, "Remedy."},
		"another site":               {"POST", "localhost:1", []string{"Sec-Fetch-Site", "cross-site"}, "other origins"},
		"another port":               {"POST", "localhost:1", []string{"Sec-Fetch-Site", "same-site"}, "other origins"},
		"a word that nobody knows":   {"DELETE", "localhost:1", []string{"Sec-Fetch-Site", "somewhere"}, "other origins"},
		"an older browser":           {"POST", "localhost:1", []string{"Origin", "http://evil.example"}, "other origins"},
		"a page without an origin":   {"POST", "localhost:1", []string{"Origin", "null"}, "other origins"},
		"another port, older":        {"POST", "localhost:1", []string{"Origin", "http://localhost:2"}, "other origins"},
		"a WebSocket of a page": {"GET", "localhost:1", []string{"Upgrade", "WebSocket",
			"Origin", "https://evil.example"}, "other origins"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), test.method, "/", nil)
		r.Host = test.host
		for i := 0; i < len(test.header); i += 2 {
			r.Header.Set(test.header[i], test.header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if test.want == "" && w.Code != 204 || test.want != "" &&
			(w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), test.want)) {
			t.Errorf("%s: %d %q, want %q", name, w.Code, w.Body, test.want)
		}
	}
}
