package httpbroker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// dialDelay is the head start of one address before the next is tried beside it (RFC 8305, section 5).
	dialDelay = 250 * time.Millisecond
	// dialTries is how many addresses of one name are tried.
	dialTries = 8
)

// Resolver looks names up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialer connects for one rule, and only to addresses that the rule permits. A name is resolved once and the addresses
// that were checked are the ones dialled, so a second answer of the name server changes nothing.
type dialer struct {
	rule     *rule
	resolver Resolver
	connect  func(ctx context.Context, network, address string) (net.Conn, error)
}

// addresses resolves host and returns the addresses that the rule permits, or the refusal of the first if it permits none.
func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused error
	var permitted []netip.Addr
	for _, a := range all {
		if err := d.rule.permits(host, a); err == nil {
			permitted = append(permitted, a.Unmap())
		} else if refused == nil {
			refused = err
		}
	}
	if len(permitted) > 0 {
		return permitted[:min(len(permitted), dialTries)], nil
	}
	if refused == nil {
		refused = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	return nil, refused
}

func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return d.resolver.LookupNetIP(ctx, "ip", host)
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs, err := d.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	return d.race(ctx, network, addrs, port)
}

// race dials the addresses in order, each a dialDelay after the one before or as soon as that has failed. The first
// connection wins; what connects later is closed.
func (d *dialer) race(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns, failures := make(chan net.Conn), make(chan error, len(addrs))
	turn := make(chan struct{})
	close(turn)
	for i, a := range addrs {
		failed := make(chan struct{})
		go func(turn <-chan struct{}) {
			await(ctx, turn, time.Duration(i)*dialDelay)
			conn, err := d.connect(ctx, network, net.JoinHostPort(a.String(), port))
			if err != nil {
				failures <- err
				close(failed)
				return
			}
			select {
			case conns <- conn:
			case <-ctx.Done():
				_ = conn.Close()
			}
		}(turn)
		turn = failed
	}
	var errs []error
	for range addrs {
		select {
		case conn := <-conns:
			return conn, nil
		case err := <-failures:
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}

// await returns when turn is closed, the delay is over or ctx ends.
func await(ctx context.Context, turn <-chan struct{}, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-turn:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// newTransport returns the rule's own transport. Connections are not shared between rules: one that a rule with Private
// opened must not serve a rule without.
func newTransport(d *dialer, proxy *url.URL, roots *x509.CertPool, header int64) *http.Transport {
	t := &http.Transport{
		DialContext:            d.dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		DisableCompression:     true, // done here, where the limits are
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: header,
	}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
		t.DialContext = d.connect
	}
	return t
}
