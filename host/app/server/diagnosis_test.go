package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHostileDiagnosis: only programs on this machine are told what runs.
func TestHostileDiagnosis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host, remote string
		headers      []string
		want         bool
	}{
		"this machine":               {"localhost:8420", "127.0.0.1:5", nil, true},
		"this machine, IPv6":         {"[::1]:8420", "[::1]:5", nil, true},
		"its own address":            {"localhost", "10.0.0.5:5", nil, true},
		"another machine":            {"localhost", "10.0.0.6:5", nil, false},
		"a web page's name":          {"evil.example.com", "127.0.0.1:5", nil, false},
		"a proxy":                    {"localhost", "127.0.0.1:5", []string{"X-Forwarded-For", "10.0.0.6"}, false},
		"a proxy, standard":          {"localhost", "127.0.0.1:5", []string{"Forwarded", "for=10.0.0.6"}, false},
		"an address that is no such": {"localhost", "@", nil, false},
	} {
		r := httptest.NewRequest(http.MethodGet, DiagnosisPath, nil)
		var own net.Addr = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 8420}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, own))
		r.Host, r.RemoteAddr = test.host, test.remote
		for i := 0; i < len(test.headers); i += 2 {
			r.Header.Set(test.headers[i], test.headers[i+1])
		}
		if got := fromThisMachine(r); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
