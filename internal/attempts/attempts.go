// Package attempts limits failed logins, for each address and for all addresses together: some at once, then one after
// the other. This also keeps the audit log readable. Limiter.Begin counts an attempt.
package attempts

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	perAddress      = 10
	perAddressEvery = 10 * time.Second
	ofAll           = 200
	ofAllEvery      = 200 * time.Millisecond
	// maxAddresses limits the remembered addresses. Beyond it, those with all of their attempts are forgotten.
	maxAddresses = 4096
)

// Limiter counts failed logins. It is safe for concurrent use.
type Limiter struct {
	mu        sync.Mutex
	all       *rate.Limiter
	addresses map[string]*rate.Limiter
}

// New returns a Limiter that has counted nothing.
func New() *Limiter {
	return &Limiter{all: rate.NewLimiter(rate.Every(ofAllEvery), ofAll), addresses: map[string]*rate.Limiter{}}
}

// Begin counts an attempt; succeeded takes it back. Where there are too many, succeeded is nil and wait is the time
// until there may be another.
func (a *Limiter) Begin(address string, now time.Time) (succeeded func(), wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all.ReserveN(now, 1)
	if wait := all.DelayFrom(now); wait > 0 {
		all.CancelAt(now)
		return nil, wait
	}
	one := a.limiter(network(address), now).ReserveN(now, 1)
	if wait := one.DelayFrom(now); wait > 0 {
		one.CancelAt(now)
		all.CancelAt(now)
		return nil, wait
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		one.CancelAt(now)
		all.CancelAt(now)
	}, 0
}

// Addresses returns the number of addresses that are remembered.
func (a *Limiter) Addresses() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.addresses)
}

// limiter returns the limiter of an address. mu is held. There are never many more than maxAddresses: each new one
// costs an attempt of all.
func (a *Limiter) limiter(address string, now time.Time) *rate.Limiter {
	l, ok := a.addresses[address]
	if ok {
		return l
	}
	if len(a.addresses) >= maxAddresses {
		for known, l := range a.addresses {
			if l.TokensAt(now) >= perAddress {
				delete(a.addresses, known)
			}
		}
	}
	l = rate.NewLimiter(rate.Every(perAddressEvery), perAddress)
	a.addresses[address] = l
	return l
}

// network identifies a client: an IPv4 address, or an IPv6 network, since anybody has 2^64 addresses of it.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
