// Package callclock bounds the time of a call, without that in which a person is asked.
package callclock

import (
	"context"
	"sync"
	"time"
)

// Clock ends a call when its time is up. It stands still while a person is asked.
type Clock struct {
	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time
	asking int
}

// Start returns a context that ends with cause once it has run for limit. stop releases it.
func Start(parent context.Context, limit time.Duration, cause error) (_ context.Context, c *Clock, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c = &Clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() { cancel(cause) })
	return ctx, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// Pause stops the clock until resume is called.
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking++; c.asking == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asking--; c.asking == 0 {
			c.since = time.Now()
			c.timer.Reset(max(0, c.left))
		}
	}
}
