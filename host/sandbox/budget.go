package sandbox

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/limit"
)

// budget bounds the memory of all guests of an engine: linear memories, images, the estimated size of compiled code,
// and large requests and answers that the host holds. Memory is reserved before it is allocated, so used never exceeds
// limit.
type budget struct {
	limit int64
	// reclaim frees something idle. It returns false if nothing is idle.
	reclaim func() bool

	used atomic.Int64
	// undelivered counts the deliveries that are charged. Only a garbage collection finds those whose response was
	// dropped.
	undelivered atomic.Int64
	collecting  sync.Mutex
	collected   time.Time // guarded by collecting

	mu sync.Mutex
	// freed is closed when memory is released. It is nil while no call waits.
	freed chan struct{}
}

// tryReserve reserves n bytes if they are free.
func (b *budget) tryReserve(n int64) bool {
	for {
		used := b.used.Load()
		if n > b.limit-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// reserve reserves n bytes. It frees idle memory if necessary.
func (b *budget) reserve(n int64) bool {
	for !b.tryReserve(n) {
		if n > b.limit || !b.reclaim() && !b.collectDropped() {
			return false
		}
	}
	return true
}

// reserveWithin is reserve, but waits up to patience for the bytes. It fails with a *limit.Error or with the error of
// ctx.
func (b *budget) reserveWithin(ctx context.Context, plugin string, n int64, patience time.Duration) error {
	if b.reserve(n) {
		return nil
	}
	if n > b.limit {
		return b.exceededError(plugin)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		freed := b.freedSignal()
		if b.reserve(n) {
			return nil
		}
		select {
		case <-freed:
		case <-timer.C:
			return b.exceededError(plugin)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collectDropped runs the garbage collector to find dropped responses, at most once per collectInterval, and reports
// whether memory was released.
func (b *budget) collectDropped() bool {
	if b.undelivered.Load() == 0 {
		return false
	}
	b.collecting.Lock()
	defer b.collecting.Unlock()
	if time.Since(b.collected) < collectInterval {
		return false
	}
	freed := b.freedSignal()
	runtime.GC()
	b.collected = time.Now()
	select {
	case <-freed:
		return true
	case <-time.After(cleanupWait): // cleanups run after runtime.GC has returned
		return false
	}
}

const (
	collectInterval = 100 * time.Millisecond
	cleanupWait     = 10 * time.Millisecond
)

func (b *budget) freedSignal() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

func (b *budget) release(n int64) {
	b.used.Add(-n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

func (b *budget) exceededError(plugin string) error {
	return &limit.Error{Plugin: plugin, Limit: limit.Budget, Value: limit.Bytes(b.limit),
		Remedy: "try again shortly, or raise " + limit.Budget}
}

// reclaimable is a kind of cache that plugins keep only for speed.
type reclaimable struct {
	// since returns when a plugin's oldest entry was last used; reclaim frees that entry.
	since   func(*Plugin) (time.Time, bool)
	reclaim func(*Plugin) bool
}

// reclaimables are in the order in which they are freed: the cheapest to rebuild comes first.
var reclaimables = []reclaimable{
	{(*Plugin).idleInstanceSince, (*Plugin).closeIdleInstance},
	{(*Plugin).idleSessionSince, (*Plugin).closeIdleSession},
	{(*Plugin).idleCodeSince, (*Plugin).unload},
}

// reclaim frees the least recently used entry of the cheapest kind that any plugin has.
func (e *Engine) reclaim() bool {
	for _, kind := range reclaimables {
		for {
			p := e.oldest(kind)
			if p == nil {
				break
			}
			if kind.reclaim(p) {
				return true
			}
		}
	}
	return false
}

// oldest returns the plugin with the least recently used entry of a kind, or nil.
func (e *Engine) oldest(kind reclaimable) *Plugin {
	e.mu.Lock()
	defer e.mu.Unlock()
	var oldest *Plugin
	var least time.Time
	for p := range e.plugins {
		if since, ok := kind.since(p); ok && (oldest == nil || since.Before(least)) {
			oldest, least = p, since
		}
	}
	return oldest
}

func (p *Plugin) idleInstanceSince() (time.Time, bool) {
	if code, ok := p.tryLoadedCode(); ok {
		return code.pool.oldestSince()
	}
	return time.Time{}, false
}

func (p *Plugin) closeIdleInstance() bool {
	code, ok := p.tryLoadedCode()
	return ok && code.pool.closeOldest()
}

func (p *Plugin) idleSessionSince() (time.Time, bool) { return p.sessions.oldestSince() }
func (p *Plugin) closeIdleSession() bool              { return p.sessions.closeOldest() }
