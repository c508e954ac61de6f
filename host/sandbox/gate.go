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
