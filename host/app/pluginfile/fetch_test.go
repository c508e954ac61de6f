package pluginfile

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/outbound"
)

// TestFetchPublicRefuses: nobody reaches the operator's network or this machine through hako.
func TestFetchPublicRefuses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://127.0.0.1/p.wasm?key=secret":       "only public addresses",
		"https://localhost/p.wasm":                  "only public addresses",
		"https://[::1]/p.wasm":                      "only public addresses",
		"https://[::ffff:127.0.0.1]/p.wasm":         "only public addresses",
		"https://10.0.0.1/p.wasm":                   "only public addresses",
		"https://192.168.1.1:8443/p.wasm":           "only public addresses",
		"https://169.254.169.254/latest/meta-data/": "only public addresses",
		"https://[fd00::1]/p.wasm":                  "only public addresses",
		"https://0.0.0.0/p.wasm":                    "only public addresses",
		"https://[64:ff9b::a00:1]/p.wasm":           "only public addresses",
		"http://example.com/p.wasm":                 "is not https",
		"http://127.0.0.1/p.wasm":                   "is not https",
		"file:///etc/passwd":                        "is not https",
	} {
		_, err := fetchPublic(t.Context(), parseURL(t, address), nil, 1<<20)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// names resolves names as they are in it, so many times; the last address stays.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	list := n[host]
	if len(list) > 1 {
		n[host] = list[1:]
	}
	return []netip.Addr{netip.MustParseAddr(list[0])}, nil
}

// TestFetchPublicRedirects: a redirect, or a name that resolves to another address later, leads nowhere else.
func TestFetchPublicRedirects(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/inside":
			http.Redirect(w, r, "http://inside.example/p.wasm", http.StatusFound)
		case "/rebinds":
			w.Header().Set("Connection", "close")
			http.Redirect(w, r, "http://rebinds.example/p.wasm", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, 2<<20))
		default:
			_, _ = w.Write([]byte("wasm"))
		}
	}))
	t.Cleanup(server.Close)
	fetch := func(path string) ([]byte, error) {
		resolver := names{"public.example": {"8.8.8.8"}, "inside.example": {"10.1.2.3"}, "rebinds.example": {"8.8.8.8", "127.0.0.1"}}
		transport := outbound.NewPublicTransport(nil)
		transport.DialContext = (&outbound.Dialer{Resolver: resolver,
			Connect: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			}}).Dial
		anything := func(*url.URL) error { return nil }
		return download(t.Context(), transport, parseURL(t, "http://"+path), anything, 1<<20)
	}
	if wasm, err := fetch("public.example/p.wasm"); string(wasm) != "wasm" {
		t.Errorf("a public address: %q, %v", wasm, err)
	}
	for path, want := range map[string]string{
		"public.example/inside": "inside.example is at a private address", "rebinds.example/rebinds": "rebinds.example is at a loopback address",
		"public.example/large": "it is larger than 1MiB",
	} {
		if wasm, err := fetch(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d bytes, %v, want %q", path, len(wasm), err, want)
		}
	}
}

func parseURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestFetchPublicNamed: a server that the operator has named may be at any address, and leads nowhere else.
func TestFetchPublicNamed(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("wasm"))
	}))
	t.Cleanup(server.Close)
	named := outbound.HostPort(parseURL(t, server.URL))
	if wasm, err := fetchPublic(t.Context(), parseURL(t, server.URL), nil, 100, named); string(wasm) != "wasm" {
		t.Errorf("the named server: %q, %v", wasm, err)
	}
	for _, address := range []string{other.URL, server.URL + "/away"} {
		if wasm, err := fetchPublic(t.Context(), parseURL(t, address), nil, 100, named); err == nil {
			t.Errorf("%s: %q", address, wasm)
		}
	}
}
