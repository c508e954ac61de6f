// Package callclock bounds the time of a call, without the time in which a person is asked.
//
// Start returns a context with a clock, and Pause stops all clocks of a context and its parents while somebody waits
// for a person's answer.
package callclock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Clock ends a call when its time is up.
type Clock struct {
	parent context.Context // the caller's, for its values and its deadline
	outer  *Clock          // that of parent, or nil
	done   chan struct{}

	// mu guards the fields below.
	mu      sync.Mutex
	timer   *time.Timer
	expiry  *expiry       // what timer calls
	left    time.Duration // when the clock was started or resumed
	since   time.Time     // when that was
	asking  int           // how often it is paused
	expired bool
	err     error // of the context, once it has ended
	onEnd   map[int]func()
	next    int
}

// clockKey is the key of a context's innermost clock.
type clockKey struct{}

// Start returns a context that ends with context.DeadlineExceeded once it has run for limit, pauses not counted. stop
// releases it.
func Start(parent context.Context, limit time.Duration) (_ context.Context, c *Clock, stop func()) {
	return start(parent, &Clock{left: limit})
}

// StartPaused is Start with a clock that stands still until resume is called.
func StartPaused(parent context.Context, limit time.Duration) (_ context.Context, resume, stop func()) {
	ctx, c, stop := start(parent, &Clock{left: limit, asking: 1})
	return ctx, c.resumption(), stop
}

func start(parent context.Context, c *Clock) (_ context.Context, _ *Clock, stop func()) {
	c.parent, c.done, c.since = parent, make(chan struct{}), time.Now()
	c.outer, _ = parent.Value(clockKey{}).(*Clock)
	c.mu.Lock()
	c.expiry = new(expiry)
	c.expiry.clock.Store(c)
	c.timer = time.AfterFunc(c.left, c.expiry.fire)
	if c.asking > 0 {
		c.timer.Stop()
	}
	c.mu.Unlock()
	unlink := context.AfterFunc(parent, func() { c.end(parent.Err()) })
	return (*clockContext)(c), c, func() {
		unlink()
		c.end(context.Canceled)
	}
}

// Pause stops the clocks of ctx until resume is called.
func Pause(ctx context.Context) (resume func()) {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	var resumes []func()
	for ; c != nil; c = c.outer {
		resumes = append(resumes, c.Pause())
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

// Pause stops the clock until resume is called. Pauses may overlap.
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking++; c.asking == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	return c.resumption()
}

// resumption returns a function that ends one pause.
func (c *Clock) resumption() func() {
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asking--; c.asking == 0 && c.err == nil {
			c.since = time.Now()
			c.timer.Reset(max(0, c.left))
		}
	})
}

// Expired reports whether the time is up.
func (c *Clock) Expired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// expiry leads from the timer to its clock until that ends. The runtime may keep a stopped timer until its time would
// have come, and with it all that the call's context holds.
type expiry struct{ clock atomic.Pointer[Clock] }

func (e *expiry) fire() {
	if c := e.clock.Load(); c != nil {
		c.expire()
	}
}

func (c *Clock) expire() {
	c.mu.Lock()
	if c.err != nil || c.asking > 0 || time.Since(c.since) < c.left {
		c.mu.Unlock()
		return // the timer had fired before a pause
	}
	c.expired = true
	c.mu.Unlock()
	c.end(context.DeadlineExceeded)
}

// end ends the context, unless it has ended.
func (c *Clock) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.timer.Stop()
	c.expiry.clock.Store(nil)
	close(c.done)
	calls := c.onEnd
	c.onEnd = nil
	c.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// clockContext is the context of a clock. It ends with the clock's time or with its parent.
type clockContext Clock

func (c *clockContext) Deadline() (time.Time, bool) {
	clock := (*Clock)(c)
	limit, bounded := clock.parent.Deadline()
	clock.mu.Lock()
	defer clock.mu.Unlock()
	if clock.asking > 0 {
		return limit, bounded
	}
	if own := clock.since.Add(clock.left); !bounded || own.Before(limit) {
		return own, true
	}
	return limit, bounded
}

func (c *clockContext) Done() <-chan struct{} { return c.done }

func (c *clockContext) Err() error {
	clock := (*Clock)(c)
	clock.mu.Lock()
	defer clock.mu.Unlock()
	return clock.err
}

func (c *clockContext) Value(key any) any {
	if key == (clockKey{}) {
		return (*Clock)(c)
	}
	return c.parent.Value(key)
}

// AfterFunc lets package context follow the clock without a goroutine.
func (c *clockContext) AfterFunc(f func()) (stop func() bool) {
	clock := (*Clock)(c)
	clock.mu.Lock()
	defer clock.mu.Unlock()
	if clock.err != nil {
		go f()
		return func() bool { return false }
	}
	if clock.onEnd == nil {
		clock.onEnd = map[int]func(){}
	}
	id := clock.next
	clock.next++
	clock.onEnd[id] = f
	return func() bool {
		clock.mu.Lock()
		defer clock.mu.Unlock()
		_, ok := clock.onEnd[id]
		delete(clock.onEnd, id)
		return ok
	}
}
