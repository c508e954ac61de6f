package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Plugin is one plugin ready to be called. It is safe for concurrent use: no two calls at once are in the same instance.
type Plugin struct {
	engine *Engine
	spec   Spec
	logger *slog.Logger
	gate   *gate
	// share is the plugin's part in the scheduler.
	share share

	// calls counts calls in flight, which Close waits for. closing guards adding to it.
	calls   sync.WaitGroup
	closing sync.RWMutex
	closed  bool

	// mu guards what follows.
	mu sync.Mutex
	// code is nil until the first compilation succeeds, and after a long time without calls.
	code *code
	// used is when the last call in it ended; expiry unloads it then.
	used   time.Time
	expiry *time.Timer
	// compiling is closed when the compilation that is under way has ended. failed says why the last one did not succeed, starved that
	// compiled code waits for memory.
	compiling chan struct{}
	failed    error
	starved   atomic.Bool
	// prepared says that the plugin has been compiled once, or that it cannot be.
	prepared bool
	// background counts what goes on without a call. It ends with lifetime.
	background sync.WaitGroup
	lifetime   context.Context
	end        context.CancelFunc

	// sessions is nil unless state lasts for one.
	sessions *sessions
}

// Prepare compiles the plugin and links its imports, unless that has been done, and waits for it. Calls do not: until then they run in
// an interpreter. A plugin that is too much for the compiler stays there, without an error. It fails if the code is not valid Wasm or can
// be neither compiled nor interpreted. What has not been called for ten minutes is unloaded again, and then loaded from the cache.
func (p *Plugin) Prepare(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.calls.Done()
	return p.prepare(ctx)
}

// Prepared reports whether the plugin has been compiled since it was made, by this process, or was found to be one that cannot be.
func (p *Plugin) Prepared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prepared
}

// begin counts a call in, unless the plugin is closed.
func (p *Plugin) begin() error {
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return fmt.Errorf("plugin %s: %w", p.spec.Name, ErrClosed)
	}
	p.calls.Add(1)
	return nil
}

// Close waits for the calls in flight, and for some seconds for the compiler, and frees the compiled code. Calls that come later get
// ErrClosed. It may be called twice.
func (p *Plugin) Close() error {
	p.closing.Lock()
	p.closed = true
	p.closing.Unlock()
	p.calls.Wait()
	p.engine.remove(p)
	grace := time.AfterFunc(p.engine.closeGrace, p.end)
	p.background.Wait()
	grace.Stop()
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.release()
}
