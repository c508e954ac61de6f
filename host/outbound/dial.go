package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"time"
)

const (
	// Timeout limits a connection attempt, including name resolution.
	Timeout = 10 * time.Second
	// dialDelay is the delay between attempts with successive addresses (RFC 8305, section 5).
	dialDelay = 250 * time.Millisecond
	// dialTries limits the addresses of one name that are tried.
	dialTries = 8
)

// Resolver resolves names. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer connects for one rule, only to addresses that the rule allows. It resolves a name once and dials the checked
// addresses, so DNS rebinding has no effect.
type Dialer struct {
	Host Host
	// Private allows addresses that are not public: private, loopback, link-local. If Host is a literal address or
	// "localhost", that address is allowed without it.
	Private bool
	// Proxy is an upstream proxy (http, https or socks5), for Dial. The proxy then resolves names, so addresses are
	// checked only as far as names resolve on this machine. Nil means none.
	Proxy *url.URL
	// Resolver resolves names. Nil means net.DefaultResolver. "localhost" is not resolved.
	Resolver Resolver
	// Connect opens a connection to an address. Nil means a net.Dialer.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// Addresses resolves host and returns the addresses that the rule allows, or the RefusedError of the first one if it
// allows none.
func (d *Dialer) Addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused error
	var permitted []netip.Addr
	for _, a := range all {
		if err := d.checkAddress(host, a); err == nil {
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

// CheckProxied returns a RefusedError if the rule does not allow one of host's addresses, because a proxy may use any
// of them. A name that cannot be resolved on this machine is left to the proxy.
func (d *Dialer) CheckProxied(ctx context.Context, host string) error {
	all, err := d.lookup(ctx, host)
	if err != nil {
		return nil
	}
	for _, a := range all {
		if err := d.checkAddress(host, a); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if host == localhost {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	if d.Resolver == nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return d.Resolver.LookupNetIP(ctx, "ip", host)
}

// Dial connects to address, a host in the form of CanonicalHost and a port. The error wraps a RefusedError if the rule
// allows none of the host's addresses.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if d.Proxy != nil {
		if err := d.CheckProxied(ctx, host); err != nil {
			return nil, err
		}
		return d.dialProxy(ctx, address)
	}
	addrs, err := d.Addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	return d.race(ctx, network, addrs, port)
}

// DialAny connects to address without a check. It is for destinations that guests cannot choose.
func (d *Dialer) DialAny(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Connect == nil {
		return (&net.Dialer{Timeout: Timeout}).DialContext(ctx, network, address)
	}
	return d.Connect(ctx, network, address)
}

// race dials the addresses in order, each dialDelay after the previous one or when that has failed. It returns the
// first connection and closes later ones.
func (d *Dialer) race(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns, failures := make(chan net.Conn), make(chan error, len(addrs))
	turn := make(chan struct{})
	close(turn)
	for i, a := range addrs {
		failed := make(chan struct{})
		go func(turn <-chan struct{}) {
			await(ctx, turn, time.Duration(i)*dialDelay)
			conn, err := d.DialAny(ctx, network, net.JoinHostPort(a.String(), port))
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

// await waits until turn is closed, the delay has passed or ctx ends.
func await(ctx context.Context, turn <-chan struct{}, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-turn:
	case <-timer.C:
	case <-ctx.Done():
	}
}

var _ Resolver = (*net.Resolver)(nil)
