package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/link"
)

// code is a plugin compiled or interpreted in its own runtime, with the imports linked and the pool of its instances.
type code struct {
	runtime wazero.Runtime
	// modules are the core modules: one, or those of a component by their IDs.
	modules []module
	// program is nil for a core module.
	program *link.Program
	// digest is the SHA-256 of the rewritten plugin.
	digest [sha256.Size]byte
	// singleUse is true if an instance cannot be restored and therefore serves one call.
	singleUse atomic.Bool
	// startAhead is true if a single-use instance may be started before its call.
	startAhead atomic.Bool
	data       startData
	// interpreted is true for the interpreter; compiled code usually replaces it later.
	interpreted bool
	// weight is the estimated memory of the compiled code, in bytes. It is reserved in the budget.
	weight int64
	pool   pool
	// users counts running calls; retired is true once other code has replaced this. Plugin.mu guards both.
	users   int
	retired bool
}

// module is a core module, compiled or interpreted.
type module struct {
	link.Module
	// globals are the export names of the mutable globals.
	globals []string
	// memory is the size with which the module's own memory starts, in bytes; -1 if it has none.
	memory int64
}

// codeFactor is the estimated memory of compiled code and the runtime's data, per byte of the plugin file.
const codeFactor = 8

// unloadTime is the time after which unused code leaves the memory. The next call loads it from the cache.
const unloadTime = 10 * time.Minute

// acquireCode returns the code, loading it if necessary. The call returns it with releaseCode.
func (p *Plugin) acquireCode(ctx context.Context) (*code, error) {
	for {
		code, compiling, err := p.tryAcquireCode(ctx)
		if code != nil || err != nil {
			return code, err
		}
		select {
		case <-compiling:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryAcquireCode returns the code, or a channel that is closed when the compilation that it waits for has ended.
func (p *Plugin) tryAcquireCode(ctx context.Context) (*code, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == nil {
		if err := p.loadForCall(ctx); err != nil {
			return nil, nil, err
		}
	}
	if p.code == nil {
		return nil, p.compiling, nil
	}
	p.code.users++
	p.called = true
	return p.code, nil, nil
}

func (p *Plugin) releaseCode(code *code) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code.users--
	p.lastUsed = time.Now()
	if code.retired && code.users == 0 {
		p.background.Go(func() { p.logUnloadError(p.closeCode(code)) })
	}
}

// installCode makes code current for new calls and closes the previous code once unused. p.mu is held.
func (p *Plugin) installCode(code *code) {
	if old := p.code; old != nil {
		old.retired = true
		if old.users == 0 {
			p.background.Go(func() { p.logUnloadError(p.closeCode(old)) })
		}
	}
	p.code = code
	p.lastUsed = time.Now()
	if p.unloadTimer == nil {
		p.unloadTimer = time.AfterFunc(unloadTime, p.unloadIdle)
	}
}

// tryLoadedCode returns the current code. It reports false if there is none or p.mu is held elsewhere.
func (p *Plugin) tryLoadedCode() (*code, bool) {
	if !p.mu.TryLock() {
		return nil, false
	}
	defer p.mu.Unlock()
	return p.code, p.code != nil
}

// startMemory is the size of the linear memories that an instance starts with, in bytes.
func (code *code) startMemory(image *image) (need int64) {
	if image != nil {
		return image.size()
	}
	for _, module := range code.modules {
		need += max(module.memory, 0)
	}
	return need
}

// idleCodeSince returns when the code was last used. It reports false if the code cannot be unloaded now.
func (p *Plugin) idleCodeSince() (time.Time, bool) {
	if !p.mu.TryLock() {
		return time.Time{}, false
	}
	defer p.mu.Unlock()
	return p.lastUsed, p.unloadable()
}

// unloadable reports whether there is code that no call uses and that holds no state. p.mu is held.
func (p *Plugin) unloadable() bool {
	busy := p.compiling != nil && !p.starved.Load() || p.sessions.any()
	return p.code != nil && p.code.users == 0 && !busy &&
		(p.spec.State != manifest.StateShared || p.code.pool.noneIdle())
}

// reserveCode reserves memory for code, waiting up to Limits.QueueWait.
func (p *Plugin) reserveCode(ctx context.Context, weight int64) error {
	return p.engine.budget.reserveWithin(ctx, p.spec.Name, weight, p.spec.Limits.QueueWait)
}

// reserveCompiled is reserveCode for code that replaces interpreted code: it waits until memory is free or the plugin
// is closed. The interpreted code may be unloaded meanwhile.
func (p *Plugin) reserveCompiled(weight int64) error {
	p.starved.Store(true)
	defer p.starved.Store(false)
	for {
		err := p.engine.budget.reserveWithin(p.lifetime, p.spec.Name, weight, time.Second)
		if err == nil || weight > p.engine.budget.limit || p.lifetime.Err() != nil {
			return err
		}
	}
}

// unload frees the code with its instances and image. It reports false if the code is in use.
func (p *Plugin) unload() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	if !p.unloadable() {
		return false
	}
	p.logUnloadError(p.unloadLocked())
	return true
}

// unloadLocked frees the code. No call may be running and p.mu must be held.
func (p *Plugin) unloadLocked() error {
	code := p.code
	if code == nil {
		return nil
	}
	p.code, p.compileErr = nil, nil
	p.unloadTimer.Stop()
	p.unloadTimer = nil
	p.sessions.close()
	return p.closeCode(code)
}

// closeCode frees code that no call uses.
func (p *Plugin) closeCode(code *code) error {
	image, err := code.pool.close()
	ctx := context.Background()
	// The runtime's engine is the engine of the cache, which keeps the module's code until the module is closed.
	err = errors.Join(err, code.closeModules(ctx))
	p.engine.budget.release(code.weight + image)
	return err
}

// globals is the number of mutable globals of an instance, memories the number of its memories.
func (code *code) globals() (count int) {
	for _, module := range code.modules {
		count += len(module.globals)
	}
	return count
}

func (code *code) memories() (count int) {
	for _, module := range code.modules {
		if module.memory >= 0 {
			count++
		}
	}
	return count
}

func (code *code) closeModules(ctx context.Context) error {
	err := code.runtime.Close(ctx)
	if code.program != nil {
		err = errors.Join(err, code.program.Close(ctx))
	}
	for _, module := range code.modules {
		err = errors.Join(err, module.Compiled.Close(ctx))
	}
	return err
}

func (p *Plugin) logUnloadError(err error) {
	if err != nil {
		p.logger.Warn("unload a plugin", "err", err)
	}
}

// unloadIdle unloads code that has been unused for unloadTime, or checks again later.
func (p *Plugin) unloadIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == nil {
		return
	}
	if left := unloadTime - time.Since(p.lastUsed); left > 0 || !p.unloadable() {
		p.unloadTimer = time.AfterFunc(max(left, time.Minute), p.unloadIdle)
		return
	}
	p.logUnloadError(p.unloadLocked())
}
