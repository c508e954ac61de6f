package limit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/manifest"
)

// Gate bounds the running calls of a plugin or an upstream server, the waiting calls and their waiting time, and the
// calls per minute. It is safe for concurrent use.
type Gate struct {
	slots   chan struct{}
	waiting atomic.Int64
	limits  manifest.Limits
	rate    *rate.Limiter
}

// NewGate returns a Gate with Concurrency, Queue, QueueWait and Rate of limits, none of which may be zero.
func NewGate(limits manifest.Limits) *Gate {
	return &Gate{
		slots:  make(chan struct{}, limits.Concurrency),
		limits: limits,
		rate:   rate.NewLimiter(rate.Limit(float64(limits.Rate)/60), limits.Rate),
	}
}

// Acquire waits for a slot, which Release gives back. It fails with an *Error that names the plugin or server, or with
// the error of ctx.
func (g *Gate) Acquire(ctx context.Context, name string) error {
	if !g.rate.Allow() {
		return &Error{name, Rate, fmt.Sprintf("%d calls a minute", g.limits.Rate),
			"try again in a minute, or raise limits.rate"}
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	if g.waiting.Add(1) > int64(g.limits.Queue) {
		g.waiting.Add(-1)
		calls := fmt.Sprintf("%d running and %d waiting calls", g.limits.Concurrency, g.limits.Queue)
		return &Error{name, Queue, calls,
			"it is busy: try again shortly, or raise limits.concurrency or limits.queue"}
	}
	defer g.waiting.Add(-1)
	timer := time.NewTimer(g.limits.QueueWait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return &Error{name, Queue, g.limits.QueueWait.String() + " of waiting",
			"it is busy: try again shortly, or raise limits.concurrency or limits.queueWait"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release gives the slot back.
func (g *Gate) Release() { <-g.slots }

// Load returns the numbers of running and waiting calls.
func (g *Gate) Load() (running, waiting int) { return len(g.slots), int(g.waiting.Load()) }
