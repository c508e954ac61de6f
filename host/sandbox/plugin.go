package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/internal/rewrite"
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

	// mu guards code, which is nil until the first compilation succeeds.
	mu   sync.Mutex
	code *code

	pool pool
	// sessions is nil unless state lasts for one.
	sessions *sessions
}

// code is the compiled plugin in a runtime that links its grants.
type code struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	// digest is that of the rewritten code.
	digest [sha256.Size]byte
	// metered says that the code has been rewritten; globals are then the names of its mutable globals.
	metered bool
	globals []string
	// lasting says that an instance serves one call and is then thrown away, because it cannot be put back.
	lasting atomic.Bool
}

// Prepare compiles the plugin and links its imports, unless that has been done. It fails if the code is not valid Wasm or imports
// what was not granted.
func (p *Plugin) Prepare(ctx context.Context) error {
	_, err := p.compiled(ctx)
	return err
}

// Prepared reports whether the plugin has been compiled.
func (p *Plugin) Prepared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code != nil
}

// Metered reports whether the plugin's code could be rewritten for metering. If not, it runs the slow way: the runtime's own
// checks stop it, and a recursion without loops only ends with the guest's stack. It is true until the plugin is prepared.
func (p *Plugin) Metered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code == nil || p.code.metered
}

// Load says how many calls run in an instance now and how many wait for one.
func (p *Plugin) Load() (running, waiting int) {
	return len(p.gate.slots), int(p.gate.waiting.Load())
}

func (p *Plugin) compiled(ctx context.Context) (*code, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code != nil {
		return p.code, nil
	}
	original, err := p.spec.Wasm()
	if err != nil {
		return nil, fmt.Errorf("plugin %s: read: %w", p.spec.Name, err)
	}
	result, err := rewrite.Module(original, quantum)
	var unsupported *rewrite.UnsupportedError
	metered := !errors.As(err, &unsupported)
	switch {
	case err != nil && metered:
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	case !metered:
		p.logger.Warn("the plugin runs the slow way", "err", err)
		result = &rewrite.Result{Wasm: original, Lasting: err.Error()}
	case result.Lasting != "":
		p.logger.Debug("each call gets a fresh instance", "reason", result.Lasting)
	}
	// The runtime outlives the call that happens to come first.
	ctx = compileContext(context.WithoutCancel(ctx))
	runtime := p.engine.runtime(ctx, metered)
	module, err := p.link(ctx, runtime, result.Wasm)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), runtime.Close(ctx))
	}
	p.code = &code{runtime: runtime, module: module, digest: sha256.Sum256(result.Wasm), metered: metered, globals: result.Globals}
	p.code.lasting.Store(result.Lasting != "")
	return p.code, nil
}

func (p *Plugin) link(ctx context.Context, runtime wazero.Runtime, wasm []byte) (wazero.CompiledModule, error) {
	module, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	if err := checkMemory(module, p.spec.Limits.Memory); err != nil {
		return nil, err
	}
	if err := linkWASI(ctx, runtime); err != nil {
		return nil, fmt.Errorf("link WASI: %w", err)
	}
	if err := linkMeter(ctx, runtime); err != nil {
		return nil, fmt.Errorf("link the meter: %w", err)
	}
	for _, imports := range append(p.spec.Modules, coreModule) {
		if err := instantiate(ctx, runtime, imports); err != nil {
			return nil, fmt.Errorf("link %s: %w", imports.Name, err)
		}
	}
	return module, nil
}

func checkMemory(module wazero.CompiledModule, limit int64) error {
	for _, memory := range module.ExportedMemories() {
		if need := int64(memory.Min()) << 16; need > limit {
			return fmt.Errorf("it needs %s of memory to start and its limit is %s: raise limits.memory", bytesText(need), bytesText(limit))
		}
	}
	return nil
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == nil {
		return nil
	}
	runtime := p.code.runtime
	p.code = nil
	p.sessions.close()
	return errors.Join(p.pool.close(), runtime.Close(context.Background()))
}
