package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/grant"
)

const movable = `
name: guest
version: 1.0.0
permissions:
  http:
    - {name: api, url: "https://api.example.com/v1/", configKey: base, reason: to fetch}
    - {name: other, url: "https://other.example.com/", reason: to fetch}
config:
  base: {type: url, default: "https://api.example.com/v1/items"}
`

// TestMovedAddress: a plugin whose addresses the operator moved finds the new one in its configuration, and its requests
// to fixed addresses arrive there too.
func TestMovedAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "fetched ", r.URL.Path)
	}))
	t.Cleanup(server.Close)
	w := newWorld(t, nil)
	w.put("guest.yaml", []byte(movable))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.consentWith("guest.wasm", func(c *grant.Consent) {
		c.HTTP = map[string]grant.HTTPMapping{"api": {URL: server.URL + "/mirror/"}, "other": {URL: server.URL + "/other"}}
	})
	w.load()
	if got, want := w.tool("config", map[string]string{"text": "base"}), server.URL+"/mirror/items"; got != want {
		t.Errorf("the configuration has %q, want %q", got, want)
	}
	for url, want := range map[string]string{
		server.URL + "/mirror/items":       "200  fetched /mirror/items",
		"https://api.example.com/v1/items": "200  fetched /mirror/items",
		"https://other.example.com/a":      "200  fetched /other/a",
	} {
		if got := w.tool("fetch", map[string]string{"text": url}); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
