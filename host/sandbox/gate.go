package sandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/manifest"
)

// gate bounds the running calls, the waiting calls and their waiting time, and the calls per minute.
type gate struct {
	slots   chan struct{}
	waiting atomic.Int64
	limits  manifest.Limits
	rate    *rate.Limiter
}

func newGate(limits manifest.Limits) *gate {
	return &gate{
		slots:  make(chan struct{}, limits.Concurrency),
		limits: limits,
		rate:   rate.NewLimiter(rate.Limit(float64(limits.Rate)/60), limits.Rate),
	}
}

// acquireSlot waits for a slot. It fails with a *LimitError or with the error of ctx.
func (g *gate) acquireSlot(ctx context.Context, plugin string) error {
	if !g.rate.Allow() {
		return &LimitError{plugin, LimitRate, fmt.Sprintf("%d calls a minute", g.limits.Rate),
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
		return &LimitError{plugin, LimitQueue, calls,
			"it is busy: try again shortly, or raise limits.concurrency or limits.queue"}
	}
	defer g.waiting.Add(-1)
	timer := time.NewTimer(g.limits.QueueWait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return &LimitError{plugin, LimitQueue, g.limits.QueueWait.String() + " of waiting",
			"it is busy: try again shortly, or raise limits.concurrency or limits.queueWait"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) releaseSlot() { <-g.slots }

// Gate applies the limits of a plugin's calls to an upstream server: concurrency, queue length, queue wait and rate. It
// is safe for concurrent use.
type Gate struct{ gate *gate }

// NewGate returns a Gate with Concurrency, Queue, QueueWait and Rate of limits, none of which may be zero.
func NewGate(limits manifest.Limits) *Gate { return &Gate{newGate(limits)} }

// Acquire waits for a slot, which Release gives back. It fails with a *LimitError that names the server, or with the
// error of ctx.
func (g *Gate) Acquire(ctx context.Context, server string) error {
	return g.gate.acquireSlot(ctx, server)
}

// Release gives the slot back.
func (g *Gate) Release() { g.gate.releaseSlot() }
