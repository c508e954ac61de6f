package sandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/manifest"
)

// gate lets a bounded number of calls run, a bounded number wait for a bounded time, and a bounded number in per minute.
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

// enter takes a slot, which leave gives back. It fails with a *LimitError or with ctx's error.
func (g *gate) enter(ctx context.Context, plugin string) error {
	if !g.rate.Allow() {
		return &LimitError{plugin, LimitRate, fmt.Sprintf("%d calls a minute", g.limits.Rate), "try again in a minute, or raise limits.rate"}
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	if g.waiting.Add(1) > int64(g.limits.Queue) {
		g.waiting.Add(-1)
		return &LimitError{plugin, LimitQueue, fmt.Sprintf("%d running and %d waiting calls", g.limits.Concurrency, g.limits.Queue),
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

func (g *gate) leave() { <-g.slots }

// Gate bounds the calls of a server as those of a plugin are bounded: so many at once, so many that wait and for how long, and so many a
// minute. It is safe for concurrent use.
type Gate struct{ gate *gate }

// NewGate returns a Gate with Concurrency, Queue, QueueWait and Rate of limits, none of which may be zero.
func NewGate(limits manifest.Limits) *Gate { return &Gate{newGate(limits)} }

// Enter waits for a place, which Leave gives back. It fails with a *LimitError that names the server, or with ctx's error.
func (g *Gate) Enter(ctx context.Context, server string) error { return g.gate.enter(ctx, server) }

// Leave gives the place back.
func (g *Gate) Leave() { g.gate.leave() }
