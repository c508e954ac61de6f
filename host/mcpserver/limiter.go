package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter counts what clients use. Clients are told apart by a key: limits hold per client and not per session, because
// MCP 2026-07-28 has no sessions and before it a client may open as many as it likes.
type limiter struct {
	limits Limits

	// mu guards what follows.
	mu      sync.Mutex
	clients map[string]*client
	calls   int
	streams int
	// idle is closed when calls reaches zero, and nil while nobody waits for that.
	idle chan struct{}
	// sweepAt is how many clients there may be before those that use nothing are forgotten.
	sweepAt int
}

// client is what one client uses.
type client struct {
	rate  *rate.Limiter
	calls int
}

const minSweep = 4096

func newLimiter(limits Limits) *limiter {
	return &limiter{limits: limits, clients: map[string]*client{}, sweepAt: minSweep}
}

// set puts other limits in force, for who comes from now on.
func (l *limiter) set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	for _, c := range l.clients {
		c.rate.SetLimit(rate.Limit(limits.Rate))
		c.rate.SetBurst(limits.Burst)
	}
}

// allow counts a request against the client's rate. Its error is a *busyError.
func (l *limiter) allow(key string) error {
	l.mu.Lock()
	c := l.client(key)
	l.mu.Unlock()
	reservation := c.rate.Reserve()
	wait := reservation.Delay()
	if wait == 0 {
		return nil
	}
	reservation.Cancel()
	return &busyError{
		reason: fmt.Sprintf("too many requests: at most %.0f a second are answered; try again in %s", float64(c.rate.Limit()), wait.Round(time.Millisecond)),
		retry:  wait,
	}
}

// enter counts a request in flight, or with stream a subscription stream, until leave is called, which it must be once. Its
// error is a *busyError.
func (l *limiter) enter(key string, stream bool) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stream {
		return l.enterStream()
	}
	c := l.client(key)
	switch {
	case l.calls >= l.limits.Calls:
		return nil, &busyError{
			reason:   fmt.Sprintf("the server is busy: %d requests are in flight already; try again later", l.calls),
			retry:    time.Second,
			everyone: true,
		}
	case c.calls >= l.limits.CallsPerClient:
		return nil, &busyError{
			reason: fmt.Sprintf("%d of your requests are in flight already: wait for some of them", c.calls),
			retry:  time.Second,
		}
	}
	l.calls++
	c.calls++
	return func() { l.leave(c) }, nil
}

func (l *limiter) enterStream() (leave func(), err error) {
	if l.streams >= l.limits.Sessions {
		return nil, &busyError{
			reason:   fmt.Sprintf("%d streams are open already; try again later", l.streams),
			retry:    time.Minute,
			everyone: true,
		}
	}
	l.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams--
	}, nil
}

func (l *limiter) leave(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls--
	c.calls--
	if l.calls == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// client returns the client with this key. The caller holds mu.
func (l *limiter) client(key string) *client {
	if c, ok := l.clients[key]; ok {
		return c
	}
	if len(l.clients) >= l.sweepAt {
		l.sweep()
	}
	c := &client{rate: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
	l.clients[key] = c
	return c
}

// sweep forgets clients that are indistinguishable from new ones.
func (l *limiter) sweep() {
	for key, c := range l.clients {
		if c.calls == 0 && c.rate.Tokens() >= float64(l.limits.Burst) {
			delete(l.clients, key)
		}
	}
	l.sweepAt = max(minSweep, 2*len(l.clients))
}

// wait waits until no request is in flight or ctx is done; streams do not count.
func (l *limiter) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.calls == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
