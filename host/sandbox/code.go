package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/manifest"
)

// code is the compiled plugin in a runtime that links its grants, with its instances.
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
	// weight is what the compiled code takes in memory, estimated.
	weight int64
	pool   pool
}

// codeFactor is how much larger compiled code is than the plugin's file, with what the runtime keeps beside it.
const codeFactor = 8

// unloadTime is how long compiled code stays in memory without a call. It is loaded again from the cache at the next one.
const unloadTime = 10 * time.Minute

// use returns the compiled code, which done must be told of when the call is over.
func (p *Plugin) use(ctx context.Context) (*code, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code, err := p.compiled(ctx)
	if err == nil {
		p.users++
	}
	return code, err
}

func (p *Plugin) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	p.used = time.Now()
}

// loaded returns the compiled code, unless there is none or it is being made.
func (p *Plugin) loaded() (*code, bool) {
	if !p.mu.TryLock() {
		return nil, false
	}
	defer p.mu.Unlock()
	return p.code, p.code != nil
}

// compiled returns the code, which it compiles first if necessary. p.mu is held.
func (p *Plugin) compiled(ctx context.Context) (*code, error) {
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
	p.metered = metered
	p.code = &code{
		runtime: runtime, module: module, digest: sha256.Sum256(result.Wasm), metered: metered, globals: result.Globals,
		weight: codeFactor * int64(len(original)), pool: pool{idleTime: p.idleTime()},
	}
	p.code.lasting.Store(result.Lasting != "")
	p.engine.budget.add(p.code.weight)
	p.engine.budget.settle()
	p.used = time.Now()
	p.expiry = time.AfterFunc(unloadTime, p.expire)
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

// startMemory is how much memory an instance has from its start, in bytes.
func (code *code) startMemory(image *image) int64 {
	if image != nil {
		return int64(len(image.memory.data))
	}
	need := int64(0)
	for _, memory := range code.module.ExportedMemories() {
		need += int64(memory.Min()) << 16
	}
	return need
}

// idleCode says since when the code has not been used, if it can be unloaded.
func (p *Plugin) idleCode() (time.Time, bool) {
	if !p.mu.TryLock() {
		return time.Time{}, false
	}
	defer p.mu.Unlock()
	return p.used, p.unused()
}

// unused reports whether the code is loaded and nothing would be lost without it. p.mu is held.
func (p *Plugin) unused() bool {
	return p.code != nil && p.users == 0 && !p.sessions.any() && (p.spec.State != manifest.StateShared || p.code.pool.empty())
}

// unload gives up the compiled code, with its instances and image, unless it is in use.
func (p *Plugin) unload() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	if !p.unused() {
		return false
	}
	if err := p.release(); err != nil {
		p.logger.Warn("unload a plugin", "err", err)
	}
	return true
}

// release frees the code. No call may be under way; p.mu is held.
func (p *Plugin) release() error {
	code := p.code
	if code == nil {
		return nil
	}
	p.code = nil
	p.expiry.Stop()
	p.sessions.close()
	image, err := code.pool.close()
	err = errors.Join(err, code.runtime.Close(context.Background()))
	p.engine.budget.give(code.weight + image)
	return err
}

// expire unloads code that has not been used for long, or looks again later.
func (p *Plugin) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == nil {
		return
	}
	if left := unloadTime - time.Since(p.used); left > 0 || !p.unused() {
		p.expiry = time.AfterFunc(max(left, time.Minute), p.expire)
		return
	}
	if err := p.release(); err != nil {
		p.logger.Warn("unload a plugin", "err", err)
	}
}
