package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// budget bounds the memory of all guests of an engine: the linear memories of instances, images, code as it is
// estimated, and what the host holds of large requests and answers.
//
// Memory is taken before it is there, so used never passes limit, not even for a moment.
type budget struct {
	limit int64
	// reclaim gives up something that nobody uses now. It returns false if there is nothing.
	reclaim func() bool

	used atomic.Int64
	// undelivered counts the answers that memory is charged for. Those that were dropped are only found by a collection.
	undelivered atomic.Int64
	collecting  sync.Mutex
	collected   time.Time // guarded by collecting

	mu sync.Mutex
	// freed is closed when memory has been given back. It is nil while nobody waits.
	freed chan struct{}
}

// tryTake takes n bytes if they are free.
func (b *budget) tryTake(n int64) bool {
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

// free reports whether n bytes could be taken now.
func (b *budget) free(n int64) bool { return b.used.Load()+n <= b.limit }

// take takes n bytes, for which it gives up what is idle.
func (b *budget) take(n int64) bool {
	for !b.tryTake(n) {
		if n > b.limit || !b.reclaim() && !b.collect() {
			return false
		}
	}
	return true
}

// wait takes n bytes as take does, and waits for them up to a time. It fails with a *LimitError or with ctx's error.
func (b *budget) wait(ctx context.Context, plugin string, n int64, patience time.Duration) error {
	if b.take(n) {
		return nil
	}
	if n > b.limit {
		return b.exceeded(plugin)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		freed := b.next()
		if b.take(n) {
			return nil
		}
		select {
		case <-freed:
		case <-timer.C:
			return b.exceeded(plugin)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect has answers found that were dropped, not often, and reports whether memory has been given back since.
func (b *budget) collect() bool {
	if b.undelivered.Load() == 0 {
		return false
	}
	b.collecting.Lock()
	defer b.collecting.Unlock()
	if time.Since(b.collected) < collectInterval {
		return false
	}
	freed := b.next()
	runtime.GC()
	b.collected = time.Now()
	select {
	case <-freed:
		return true
	case <-time.After(collectPatience): // cleanups run after the collection
		return false
	}
}

const (
	collectInterval = 100 * time.Millisecond
	collectPatience = 10 * time.Millisecond
)

func (b *budget) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// give gives n bytes back.
func (b *budget) give(n int64) {
	b.used.Add(-n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

func (b *budget) exceeded(plugin string) error {
	return &LimitError{plugin, LimitBudget, bytesText(b.limit), fmt.Sprintf("try again shortly, or raise %s", LimitBudget)}
}

// spare is one kind of thing that a plugin keeps only to be faster.
type spare struct {
	// since says since when the oldest has not been used; drop gives it up.
	since func(*Plugin) (time.Time, bool)
	drop  func(*Plugin) bool
}

// spares are in the order in which they are given up: what costs least to make again comes first.
var spares = []spare{
	{(*Plugin).idleInstance, (*Plugin).dropInstance},
	{(*Plugin).idleSession, (*Plugin).dropSession},
	{(*Plugin).idleCode, (*Plugin).unload},
}

// reclaim gives up the one of the spares of all plugins that has not been used for longest.
func (e *Engine) reclaim() bool {
	for _, kind := range spares {
		for {
			p := e.oldest(kind)
			if p == nil {
				break
			}
			if kind.drop(p) {
				return true
			}
		}
	}
	return false
}

// oldest returns the plugin with the oldest spare of a kind, or nil.
func (e *Engine) oldest(kind spare) *Plugin {
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

func (p *Plugin) idleInstance() (time.Time, bool) {
	if code, ok := p.loaded(); ok {
		return code.pool.oldest()
	}
	return time.Time{}, false
}

func (p *Plugin) dropInstance() bool {
	code, ok := p.loaded()
	return ok && code.pool.drop()
}

func (p *Plugin) idleSession() (time.Time, bool) { return p.sessions.oldest() }
func (p *Plugin) dropSession() bool              { return p.sessions.drop() }
