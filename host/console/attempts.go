package console

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Failed logins are limited, to keep the audit log readable as much as for what could be guessed: some at once, then one after the other, for
// each address and for all of them together.
const (
	attemptsPerAddress = 10
	attemptEvery       = 10 * time.Second
	attemptsOfAll      = 200
	attemptOfAllEvery  = 200 * time.Millisecond
	// maxAddresses is how many addresses are remembered before those with all of their attempts are forgotten.
	maxAddresses = 4096
)

// attempts counts failed logins. It is safe for concurrent use.
type attempts struct {
	mu        sync.Mutex
	all       *rate.Limiter
	addresses map[string]*rate.Limiter
}

func newAttempts() *attempts {
	return &attempts{all: rate.NewLimiter(rate.Every(attemptOfAllEvery), attemptsOfAll), addresses: map[string]*rate.Limiter{}}
}

// begin counts an attempt; succeeded takes it back. Where there are too many it fails, and says after how many seconds there may be another.
func (a *attempts) begin(address string, now time.Time) (succeeded func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all.ReserveN(now, 1)
	if wait := all.DelayFrom(now); wait > 0 {
		all.CancelAt(now)
		return nil, faultLimited(seconds(wait))
	}
	one := a.limiter(network(address), now).ReserveN(now, 1)
	if wait := one.DelayFrom(now); wait > 0 {
		one.CancelAt(now)
		all.CancelAt(now)
		return nil, faultLimited(seconds(wait))
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		one.CancelAt(now)
		all.CancelAt(now)
	}, nil
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// limiter is that of an address. mu is held. There are never many more than maxAddresses: each new one costs an attempt of all.
func (a *attempts) limiter(address string, now time.Time) *rate.Limiter {
	l, ok := a.addresses[address]
	if ok {
		return l
	}
	if len(a.addresses) >= maxAddresses {
		for known, l := range a.addresses {
			if l.TokensAt(now) >= attemptsPerAddress {
				delete(a.addresses, known)
			}
		}
	}
	l = rate.NewLimiter(rate.Every(attemptEvery), attemptsPerAddress)
	a.addresses[address] = l
	return l
}

// network is what one somebody has: an IPv4 address, or a network of IPv6 addresses, of which anybody has 2^64.
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
