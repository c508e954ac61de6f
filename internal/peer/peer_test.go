package peer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/peer"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	proxies, err := peer.NewProxies([]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"direct", "203.0.113.7:1", nil, "203.0.113.7"},
		{"somebody claims a proxy", "203.0.113.7:1", []string{"127.0.0.1"}, "203.0.113.7"},
		{"one proxy", "10.0.0.1:1", []string{"198.51.100.9"}, "198.51.100.9"},
		{"two proxies", "10.0.0.1:1", []string{"198.51.100.9, 192.0.2.1"}, "198.51.100.9"},
		{"two headers", "10.0.0.1:1", []string{"198.51.100.9", "192.0.2.1"}, "198.51.100.9"},
		{"a claim before the proxies", "10.0.0.1:1", []string{"127.0.0.1, 198.51.100.9, 10.1.1.1"}, "198.51.100.9"},
		{"IPv6", "[2001:db8::1]:1", []string{"2001:db9::7"}, "2001:db9::7"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.9"}, "198.51.100.9"},
		{"nonsense", "10.0.0.1:1", []string{"198.51.100.9, <script>"}, "10.0.0.1"},
		{"a zone", "10.0.0.1:1", []string{"fe80::1%<script>"}, "fe80::1"},
		{"nothing", "10.0.0.1:1", nil, "10.0.0.1"},
		{"no port", "pipe", []string{"198.51.100.9"}, "pipe"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = test.remote, test.forwarded
		if got := proxies.Address(r); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if got := (peer.Proxies{}).Address(r); strings.Contains(strings.Join(test.forwarded, " "), got) {
			t.Errorf("%s, without proxies: %s", test.name, got)
		}
	}
}

func TestNewProxies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"everybody", "10.0.0.0/33", "", "10.0.0.1:80"} {
		if _, err := peer.NewProxies([]string{"10.0.0.1", text}); err == nil ||
			!strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
