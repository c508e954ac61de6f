package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// names is a Resolver with fixed addresses.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	for _, a := range n[host] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if addrs == nil {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, err
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host    string
		private bool
		addr    string
		want    bool
	}{
		"public":                       {"a.test", false, "1.1.1.1", true},
		"private":                      {"a.test", false, "10.0.0.1", false},
		"private, allowed":             {"a.test", true, "10.0.0.1", true},
		"loopback, allowed":            {"a.test", true, "::1", true},
		"metadata":                     {"*", false, "169.254.169.254", false},
		"metadata, private allowed":    {"*", true, "169.254.169.254", false},
		"metadata, named":              {"169.254.169.254", false, "169.254.169.254", true},
		"unspecified, private allowed": {"*", true, "0.0.0.0", false},
		"unspecified, named":           {"0.0.0.0", true, "0.0.0.0", false},
		"named":                        {"10.0.0.1", false, "10.0.0.1", true},
		"named, mapped":                {"10.0.0.1", false, "::ffff:10.0.0.1", true},
		"named, another":               {"10.0.0.1", false, "10.0.0.2", false},
		"named IPv6":                   {"fd12::1", false, "fd12::1", true},
		"localhost":                    {"localhost", false, "127.0.0.1", true},
		"localhost IPv6":               {"LOCALHOST.", false, "::1", true},
		"localhost elsewhere":          {"localhost", true, "10.0.0.1", false},
		"localhost, public":            {"localhost", false, "1.1.1.1", false},
		"below localhost":              {"x.localhost", false, "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			host, err := ParseHost(c.host)
			if err != nil {
				t.Fatal(err)
			}
			d := &Dialer{Host: host, Private: c.private}
			if err := d.checkAddress("host", netip.MustParseAddr(c.addr)); (err == nil) != c.want {
				t.Errorf("permits %s: %v, want %v", c.addr, err, c.want)
			}
		})
	}
}

func TestRace(t *testing.T) {
	t.Parallel()
	a, b, c := netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("1.0.0.1")
	for name, test := range map[string]struct {
		// after is the time until an address connects. A negative time fails at once, zero hangs.
		after map[netip.Addr]time.Duration
		want  string
		took  time.Duration
	}{
		"the first": {map[netip.Addr]time.Duration{a: time.Millisecond}, a.String(), time.Millisecond},
		"next after a failure": {map[netip.Addr]time.Duration{a: -1, b: time.Millisecond},
			b.String(), time.Millisecond},
		"next beside a hang": {map[netip.Addr]time.Duration{b: time.Millisecond}, b.String(),
			dialDelay + time.Millisecond},
		"the faster": {map[netip.Addr]time.Duration{a: time.Second, c: time.Millisecond}, c.String(),
			2*dialDelay + time.Millisecond},
		"none":     {map[netip.Addr]time.Duration{a: -1, b: -1, c: -1}, "", 0},
		"all hang": {nil, "", Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &Dialer{Resolver: names{"a.test": {a.String(), b.String(), c.String()}}}
				d.Connect = func(ctx context.Context, _, address string) (net.Conn, error) {
					host, _, _ := net.SplitHostPort(address)
					switch after := test.after[netip.MustParseAddr(host)]; {
					case after < 0:
						return nil, errors.New("refused")
					case after == 0:
						<-ctx.Done()
						return nil, ctx.Err()
					default:
						select {
						case <-ctx.Done():
						case <-time.After(after):
						}
						return namedConn{name: host}, ctx.Err()
					}
				}
				start := time.Now()
				conn, err := d.Dial(t.Context(), "tcp", "a.test:80")
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
