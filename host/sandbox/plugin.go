package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
)

// Plugin is one plugin ready to be called. It is safe for concurrent use: concurrent calls never share an instance.
type Plugin struct {
	engine *Engine
	spec   Spec
	logger *slog.Logger
	gate   *limit.Gate
	// share is the plugin's share in the scheduler.
	share share

	// calls counts calls in flight; Close waits for them. closing guards Add and closed.
	calls   sync.WaitGroup
	closing sync.RWMutex
	closed  bool

	names functionNames

	// starved is true while compiled code waits for memory.
	starved atomic.Bool
	// background counts goroutines that belong to no call. They stop when lifetime ends.
	background     sync.WaitGroup
	lifetime       context.Context
	cancelLifetime context.CancelFunc
	// sessions is nil unless Spec.State is manifest.StateSession.
	sessions *sessions

	// mu guards the fields below.
	mu sync.Mutex
	// code is nil before the first load and after the code has been unloaded.
	code *code
	// lastUsed is the time at which the last call ended. unloadTimer unloads the code unloadTime later.
	lastUsed    time.Time
	unloadTimer *time.Timer
	// compiling is closed when the running compilation has ended; nil means that none runs. compileErr is the error of
	// the last compilation.
	compiling  chan struct{}
	compileErr error
	// called is true once the plugin has been called.
	called bool
	// prepared is true once the plugin has been compiled, or has turned out not to be compilable.
	prepared bool
}

// Prepare compiles the plugin, links its imports and waits until both are done; it does nothing if they are. Calls do
// not wait for compilation: they run in an interpreter until compiled code is ready. A plugin that exceeds the
// compiler's limits stays in the interpreter, without an error. Prepare fails if the code is not valid Wasm or can be
// neither compiled nor interpreted. Code that has not been called for ten minutes is unloaded and later loaded from the
// cache.
func (p *Plugin) Prepare(ctx context.Context) error {
	if err := p.beginCall(); err != nil {
		return err
	}
	defer p.calls.Done()
	return p.prepare(ctx)
}

// UnloadUncalled frees the code of a plugin that has never been called, if the first call can load it from the cache.
func (p *Plugin) UnloadUncalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.called && p.unloadable() && p.Cached() {
		p.logUnloadError(p.unloadLocked())
	}
}

// Prepared reports whether this process has compiled the plugin, loaded its compiled code, or found that it cannot be
// compiled.
func (p *Plugin) Prepared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prepared
}

// Cached reports whether an earlier process has compiled the plugin, so that a call loads its code in milliseconds.
func (p *Plugin) Cached() bool { return p.engine.cache.outlined(p.spec.Digest) }

// beginCall registers a call, unless the plugin is closed.
func (p *Plugin) beginCall() error {
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return fmt.Errorf("plugin %s: %w", p.spec.Name, catalog.ErrClosed)
	}
	p.calls.Add(1)
	return nil
}

func (p *Plugin) isCompiling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.compiling != nil
}

// Close waits for the calls in flight, gives a running compilation Options.CompileGrace to finish, and frees the
// compiled code. Later calls return catalog.ErrClosed. It may be called twice.
func (p *Plugin) Close() error {
	p.closing.Lock()
	p.closed = true
	p.closing.Unlock()
	p.calls.Wait()
	p.engine.remove(p)
	grace := time.AfterFunc(p.engine.closeGrace, p.cancelLifetime)
	p.background.Wait()
	grace.Stop()
	p.cancelLifetime()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unloadLocked()
}
