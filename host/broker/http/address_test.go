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
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for want, addrs := range map[reach][]string{
		public: {"93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.167.255.255", "2606:4700::1111", "2400:cb00::1",
			"::ffff:1.1.1.1", "64:ff9b::1.1.1.1"},
		private: {"127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.1.1",
			"198.18.0.1", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "64:ff9b:1::1",
			"::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1"},
		named: {"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd00:ec2::23",
			"fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"},
		never: {"0.0.0.0", "0.1.2.3", "192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
			"255.255.255.255", "::", "::127.0.0.1", "ff02::1", "2001:db8::1", "3fff::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:20::1",
			"100::1", "4000::1", "5f00::1", "::ffff:0.0.0.0", "::ffff:0:127.0.0.1"},
	} {
		for _, a := range addrs {
			if kind, got := classify(netip.MustParseAddr(a)); got != want {
				t.Errorf("%s: %d (%s), want %d", a, got, kind, want)
			}
		}
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule grant.HTTPRule
		addr string
		want bool
	}{
		"public":                       {grant.HTTPRule{URL: "https://a.test"}, "1.1.1.1", true},
		"private":                      {grant.HTTPRule{URL: "https://a.test"}, "10.0.0.1", false},
		"private, allowed":             {grant.HTTPRule{URL: "https://a.test", Private: true}, "10.0.0.1", true},
		"loopback, allowed":            {grant.HTTPRule{URL: "https://a.test", Private: true}, "::1", true},
		"metadata":                     {grant.HTTPRule{URL: "http://*"}, "169.254.169.254", false},
		"metadata, private allowed":    {grant.HTTPRule{URL: "http://*", Private: true}, "169.254.169.254", false},
		"metadata, named":              {grant.HTTPRule{URL: "http://169.254.169.254"}, "169.254.169.254", true},
		"unspecified, private allowed": {grant.HTTPRule{URL: "http://*", Private: true}, "0.0.0.0", false},
		"unspecified, named":           {grant.HTTPRule{URL: "http://0.0.0.0", Private: true}, "0.0.0.0", false},
		"named":                        {grant.HTTPRule{URL: "http://10.0.0.1"}, "10.0.0.1", true},
		"named, mapped":                {grant.HTTPRule{URL: "http://10.0.0.1"}, "::ffff:10.0.0.1", true},
		"named, another":               {grant.HTTPRule{URL: "http://10.0.0.1"}, "10.0.0.2", false},
		"named IPv6":                   {grant.HTTPRule{URL: "http://[fd12::1]"}, "fd12::1", true},
		"localhost":                    {grant.HTTPRule{URL: "http://localhost"}, "127.0.0.1", true},
		"localhost IPv6":               {grant.HTTPRule{URL: "http://LOCALHOST."}, "::1", true},
		"localhost elsewhere":          {grant.HTTPRule{URL: "http://localhost", Private: true}, "10.0.0.1", false},
		"localhost, public":            {grant.HTTPRule{URL: "http://localhost"}, "1.1.1.1", false},
		"below localhost":              {grant.HTTPRule{URL: "http://x.localhost"}, "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRule(c.rule)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.permits("host", netip.MustParseAddr(c.addr)); (err == nil) != c.want {
				t.Errorf("permits %s: %v, want %v", c.addr, err, c.want)
			}
		})
	}
}

func TestPrivateAddressRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	resolver := names{"api.test": {"127.0.0.1"}, "meta.test": {"169.254.169.254"}, "mixed.test": {"0.0.0.0", "::1", "10.9.8.7"}}
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
	b := newBroker(t, &Options{Resolver: &rebinding{}, Rules: map[string]RuleOptions{"test": {Retries: -1}}}, everything("http://evil.test"))
	var dialled []string
	b.rules[0].dialer.connect = func(_ context.Context, _, address string) (net.Conn, error) {
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
		grant.HTTPRule{Name: "inside", URL: url + "/inside", Private: true}, grant.HTTPRule{Name: "outside", URL: url + "/outside"})
	mustGet(t, b, url+"/inside")
	_, err := get(t, b, url+"/outside")
	wantCode(t, err, abi.CodeNotGranted, "loopback")
}

func TestRace(t *testing.T) {
	t.Parallel()
	a, b, c := netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("1.0.0.1")
	for name, test := range map[string]struct {
		// after says when an address connects; a negative time fails at once, zero hangs.
		after map[netip.Addr]time.Duration
		want  string
		took  time.Duration
	}{
		"the first":            {map[netip.Addr]time.Duration{a: time.Millisecond}, a.String(), time.Millisecond},
		"next after a failure": {map[netip.Addr]time.Duration{a: -1, b: time.Millisecond}, b.String(), time.Millisecond},
		"next beside a hang":   {map[netip.Addr]time.Duration{b: time.Millisecond}, b.String(), dialDelay + time.Millisecond},
		"the faster":           {map[netip.Addr]time.Duration{a: time.Second, c: time.Millisecond}, c.String(), 2*dialDelay + time.Millisecond},
		"none":                 {map[netip.Addr]time.Duration{a: -1, b: -1, c: -1}, "", 0},
		"all hang":             {nil, "", dialTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{rule: &rule{}, resolver: names{"a.test": {a.String(), b.String(), c.String()}}}
				d.connect = func(ctx context.Context, _, address string) (net.Conn, error) {
					host, _, _ := net.SplitHostPort(address)
					switch after := test.after[netip.MustParseAddr(host)]; {
					case after < 0:
						return nil, errors.New("refused")
					case after == 0:
						<-ctx.Done()
						return nil, ctx.Err()
					default:
						return namedConn{name: host}, sleep(ctx, after)
					}
				}
				start := time.Now()
				conn, err := d.dial(t.Context(), "tcp", "a.test:80")
				got := ""
				if err == nil {
					got = conn.(namedConn).name
				}
				if took := time.Since(start); got != test.want || took != test.took {
					t.Errorf("connected to %q after %v, %v; want %q after %v", got, took, err, test.want, test.took)
				}
			})
		})
	}
}

type namedConn struct {
	net.Conn
	name string
}

func (namedConn) Close() error { return nil }

func TestUpstreamProxy(t *testing.T) {
	t.Parallel()
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "proxied %s", r.URL) })
	proxyURL := mustParse(t, proxy.URL)
	resolver := names{"inside.test": {"10.0.0.1"}, "outside.test": {"1.1.1.1"}}
	b := newBroker(t, &Options{Proxy: proxyURL, Resolver: resolver}, everything("http://*"))
	for url, ok := range map[string]bool{
		"http://outside.test/x": true, "http://unknown.test/x": true, "http://inside.test/x": false, "http://10.0.0.1/x": false,
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
	b := newBroker(t, &Options{Rules: map[string]RuleOptions{"test": {Retries: -1}}, Resolver: names{}}, everything(url), everything("http://gone.test"))
	_, err := get(t, b, url)
	wantCode(t, err, abi.CodeNetwork, "GET "+url, "dial")
	_, err = get(t, b, "http://gone.test")
	wantCode(t, err, abi.CodeNetwork, "GET http://gone.test/")
}
