package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/manifest"
)

// code is the compiled plugin in a runtime that links its grants, with its instances.
type code struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	// digest is that of the rewritten code.
	digest [sha256.Size]byte
	// globals are the names of its mutable globals.
	globals []string
	// lasting says that an instance serves one call and is then thrown away, because it cannot be put back.
	lasting atomic.Bool
	// ahead says that such an instance may be started before the call that it is for.
	ahead atomic.Bool
	// interpreted says that the code is not compiled. As a rule compiled code is to take its place.
	interpreted bool
	// weight is what the compiled code takes in memory, estimated. reserveCode has taken it from the budget.
	weight int64
	pool   pool
	// users counts the calls in it, and retired says that other code has taken its place. Plugin.mu guards both.
	users   int
	retired bool
}

// codeFactor is how much larger compiled code is than the plugin's file, with what the runtime keeps beside it.
const codeFactor = 8

// unloadTime is how long compiled code stays in memory without a call. It is loaded again from the cache at the next one.
const unloadTime = 10 * time.Minute

// use returns the code, which done must be told of when the call is over.
func (p *Plugin) use(ctx context.Context) (*code, error) {
	for {
		code, compiling, err := p.tryUse(ctx)
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

// tryUse returns the code, or what is closed when it may be there.
func (p *Plugin) tryUse(ctx context.Context) (*code, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code == nil {
		if err := p.load(ctx); err != nil {
			return nil, nil, err
		}
	}
	if p.code == nil {
		return nil, p.compiling, nil
	}
	p.code.users++
	return p.code, nil, nil
}

func (p *Plugin) done(code *code) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code.users--
	p.used = time.Now()
	if code.retired && code.users == 0 {
		p.background.Go(func() { p.report(p.free(code)) })
	}
}

// adopt makes code the one that calls run in from now on. p.mu is held.
func (p *Plugin) adopt(code *code) {
	if old := p.code; old != nil {
		old.retired = true
		if old.users == 0 {
			p.background.Go(func() { p.report(p.free(old)) })
		}
	}
	p.code = code
	p.used = time.Now()
	if p.expiry == nil {
		p.expiry = time.AfterFunc(unloadTime, p.expire)
	}
}

// loaded returns the code, unless there is none or it is being loaded.
func (p *Plugin) loaded() (*code, bool) {
	if !p.mu.TryLock() {
		return nil, false
	}
	defer p.mu.Unlock()
	return p.code, p.code != nil
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
	busy := p.compiling != nil && !p.starved.Load() || p.sessions.any()
	return p.code != nil && p.code.users == 0 && !busy && (p.spec.State != manifest.StateShared || p.code.pool.empty())
}

// reserveCode takes from the memory budget what code will weigh, for which it waits as a call waits for memory.
func (p *Plugin) reserveCode(ctx context.Context, weight int64) error {
	return p.engine.budget.wait(ctx, p.spec.Name, weight, p.spec.Limits.QueueWait)
}

// reserveCompiled is reserveCode for code that takes the place of interpreted code: it waits until there is memory or the plugin is
// closed. The interpreted code may be given up meanwhile.
func (p *Plugin) reserveCompiled(weight int64) error {
	p.starved.Store(true)
	defer p.starved.Store(false)
	for {
		err := p.engine.budget.wait(p.lifetime, p.spec.Name, weight, time.Second)
		if err == nil || weight > p.engine.budget.limit || p.lifetime.Err() != nil {
			return err
		}
	}
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
	p.report(p.release())
	return true
}

// release frees the code. No call may be under way; p.mu is held.
func (p *Plugin) release() error {
	code := p.code
	if code == nil {
		return nil
	}
	p.code, p.failed = nil, nil
	p.expiry.Stop()
	p.expiry = nil
	p.sessions.close()
	return p.free(code)
}

// free gives up code that no call runs in.
func (p *Plugin) free(code *code) error {
	image, err := code.pool.close()
	err = errors.Join(err, code.runtime.Close(context.Background()))
	p.engine.budget.give(code.weight + image)
	return err
}

func (p *Plugin) report(err error) {
	if err != nil {
		p.logger.Warn("unload a plugin", "err", err)
	}
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
	p.report(p.release())
}
