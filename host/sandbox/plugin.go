package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Plugin is one plugin ready to be called. It is safe for concurrent use: no two calls at once are in the same instance.
type Plugin struct {
	engine *Engine
	spec   Spec
	logger *slog.Logger
	gate   *gate

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
	// compiling is closed when the compilation that is under way has ended, for which failed says why it did not succeed.
	compiling chan struct{}
	failed    error
	// prepared says that the plugin has been compiled once, and metered what was found then.
	prepared, metered bool
	// background counts what goes on without a call.
	background sync.WaitGroup

	// sessions is nil unless state lasts for one.
	sessions *sessions
}

// Prepare compiles the plugin and links its imports, unless that has been done, and waits for it. Calls do not: until then they run in
// an interpreter. It fails if the code is not valid Wasm or imports what was not granted. What has not been called for ten minutes is unloaded again, and then loaded from the cache.
func (p *Plugin) Prepare(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.calls.Done()
	return p.prepare(ctx)
}

// Prepared reports whether the plugin has been compiled since it was made, by this process.
func (p *Plugin) Prepared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prepared
}

// Metered reports whether the plugin's code could be rewritten for metering. If not, it runs the slow way: the runtime's own
// checks stop it, and a recursion without loops only ends with the guest's stack. It is true until the plugin is prepared.
func (p *Plugin) Metered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.prepared || p.metered
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

// Close waits for the calls in flight and frees the compiled code. Calls that come later get ErrClosed. It may be called twice.
func (p *Plugin) Close() error {
	p.closing.Lock()
	p.closed = true
	p.closing.Unlock()
	p.calls.Wait()
	p.engine.remove(p)
	p.background.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.release()
}
