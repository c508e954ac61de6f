package mcpclient

import (
	"context"
	"sync"
	"time"
)

// clock ends a call when its time is up. It stands still while a person is asked.
type clock struct {
	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time
	asking int
}

// withClock returns a context that ends with cause once it has run for limit. stop releases it.
func withClock(parent context.Context, limit time.Duration, cause error) (_ context.Context, c *clock, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c = &clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() { cancel(cause) })
	return ctx, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// pause stops the clock until resume is called.
func (c *clock) pause() (resume func()) {
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
