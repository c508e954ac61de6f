package httpbroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func TestPrivateAddressRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	resolver := names{"api.test": {"127.0.0.1"}, "meta.test": {"169.254.169.254"},
		"mixed.test": {"0.0.0.0", "::1", "10.9.8.7"}}
	b := newBroker(t, &Options{Resolver: resolver}, everything("http://*:"+port))
	for url, words := range map[string][]string{
		"http://api.test:":   {"api.test is at a loopback address", "private"},
		"http://127.0.0.1:":  {"127.0.0.1 is at a loopback address"},
		"http://[::1]:":      {"loopback"},
		"http://localhost:":  {"loopback"},
		"http://meta.test:":  {"cloud metadata", "names that address"},
		"http://mixed.test:": {"unspecified"},
	} {
		_, err := get(t, b, url+port)
		wantCode(t, err, abi.CodeNotGranted, words...)
		if strings.Contains(err.Error(), "169.254") || strings.Contains(err.Error(), "10.9.8.7") {
			t.Errorf("the guest learns the address: %v", err)
		}
	}
}

func TestLocalhost(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	url := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	b := newBroker(t, &Options{Resolver: names{"localhost": {"10.0.0.1"}}}, everything(url))
	if a := mustGet(t, b, url); a.body != "here" {
		t.Errorf("got %q", a.body)
	}
}

// rebinding answers the first question with a public address and later ones with a private one.
type rebinding struct{ asked int }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.asked++; r.asked == 1 {
		return []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("10.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func TestRebinding(t *testing.T) {
	t.Parallel()
	b := newBroker(t, &Options{Resolver: &rebinding{}, Rules: map[string]RuleOptions{"test": {Retries: -1}}},
		everything("http://evil.test"))
	var dialled []string
	b.rules[0].dialer.Connect = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return nil, errors.New("not in this test")
	}
	_, err := get(t, b, "http://evil.test/")
	wantCode(t, err, abi.CodeNetwork)
	if !slices.Equal(dialled, []string{"1.1.1.1:80"}) {
		t.Errorf("dialled %v, want only the address that was checked", dialled)
	}
	_, err = get(t, b, "http://evil.test/")
	wantCode(t, err, abi.CodeNotGranted, "loopback")
	if len(dialled) != 1 {
		t.Errorf("dialled %v after rebinding", dialled)
	}
}

// A connection that a rule with Private opened must not carry the requests of a rule without.
func TestConnectionsAreNotShared(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	url := strings.Replace(s.URL, "127.0.0.1", "api.test", 1)
	b := newBroker(t, &Options{Resolver: names{"api.test": {"127.0.0.1"}}},
		grant.HTTPRule{Name: "inside", URL: url + "/inside", Private: true},
		grant.HTTPRule{Name: "outside", URL: url + "/outside"})
	mustGet(t, b, url+"/inside")
	_, err := get(t, b, url+"/outside")
	wantCode(t, err, abi.CodeNotGranted, "loopback")
}

func TestUpstreamProxy(t *testing.T) {
	t.Parallel()
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "proxied %s", r.URL) })
	proxyURL := mustParse(t, proxy.URL)
	resolver := names{"inside.test": {"10.0.0.1"}, "outside.test": {"1.1.1.1"}}
	b := newBroker(t, &Options{Proxy: proxyURL, Resolver: resolver}, everything("http://*"))
	for url, ok := range map[string]bool{
		"http://outside.test/x": true, "http://unknown.test/x": true, "http://inside.test/x": false,
		"http://10.0.0.1/x": false,
	} {
		a, err := get(t, b, url)
		if ok && (err != nil || a.body != "proxied "+url) {
			t.Errorf("%s: got %q, %v", url, a.body, err)
		}
		if !ok {
			wantCode(t, err, abi.CodeNotGranted, "private")
		}
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	url := s.URL
	s.Close()
	b := newBroker(t, &Options{Rules: map[string]RuleOptions{"test": {Retries: -1}}, Resolver: names{}},
		everything(url), everything("http://gone.test"))
	_, err := get(t, b, url)
	wantCode(t, err, abi.CodeNetwork, "GET "+url, "dial")
	_, err = get(t, b, "http://gone.test")
	wantCode(t, err, abi.CodeNetwork, "GET http://gone.test/")
}
