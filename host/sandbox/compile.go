package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox/compile"
)

// rewritten is a plugin's module as it is to run.
type rewritten struct {
	rewrite.Result
	digest [sha256.Size]byte
	size   int // of the plugin's file
}

// rewrite reads the plugin and rewrites it.
func (p *Plugin) rewrite() (*rewritten, error) {
	original, err := p.spec.Wasm()
	if err != nil {
		return nil, fmt.Errorf("plugin %s: read: %w", p.spec.Name, err)
	}
	result, err := rewrite.Module(original, quantum)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	}
	if result.Lasting != "" {
		p.logger.Debug("each call gets a fresh instance", "reason", result.Lasting)
	}
	return &rewritten{*result, sha256.Sum256(result.Wasm), len(original)}, nil
}

// maxInterpreted is how many operations a module may have for the interpreter, which needs some 70 bytes of memory for each of them, in this
// process. The Go compiler makes as many of a plugin of 12 MB.
const maxInterpreted = 4 << 20

func (module *rewritten) interpretable() bool { return module.Operations <= maxInterpreted }

// load makes code for a call that waits: compiled code if it is in the cache, else interpreted code, which is there ten times sooner,
// until compiled code takes its place. What lasts longer than a call would be lost then, so such a plugin waits for the compiler, and so does
// one that is too large for the interpreter: load leaves p.code nil and p.compiling set. What the compiler has refused stays interpreted.
// p.mu is held.
func (p *Plugin) load(ctx context.Context) error {
	module, err := p.rewrite()
	if err != nil {
		return err
	}
	if loaded, err := p.loadCompiled(ctx, module); loaded || err != nil {
		return err
	}
	refusal := p.refused(module)
	stateless := p.spec.State == "" || p.spec.State == manifest.StateCall
	if refusal == nil && !(stateless && module.interpretable()) {
		p.compile(module)
		return nil
	}
	if !module.interpretable() {
		return fmt.Errorf("plugin %s: %w; for the interpreter it is too large, with %d operations of at most %d", p.spec.Name, refusal, module.Operations, maxInterpreted)
	}
	weight := codeFactor * int64(module.size)
	if refusal != nil {
		weight = max(weight, operationSize*int64(module.Operations))
	}
	if err := p.reserveCode(ctx, weight); err != nil {
		return err
	}
	code, err := p.build(ctx, module, ByInterpreter, time.Now(), weight)
	if err != nil {
		return err
	}
	if refusal == nil {
		p.compile(module)
	} else {
		p.prepared = true
	}
	p.adopt(code)
	return nil
}

// operationSize is what the interpreter needs for an operation, in bytes.
const operationSize = 70

// refused returns why the module is not to be compiled, or nil: it was too much for the compiler once, or cannot be compiled now. p.mu is held.
func (p *Plugin) refused(module *rewritten) error {
	if _, refusal := p.engine.cache.find(module.digest); refusal != nil {
		p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty; remove the note to have it compiled again",
			"reason", refusal.Reason, "note", p.engine.cache.note(module.digest, refusedSuffix))
		return refusal
	}
	return p.failed
}

// loadCompiled makes the code from the cache the plugin's, and reports whether there was any. p.mu is held.
func (p *Plugin) loadCompiled(ctx context.Context, module *rewritten) (bool, error) {
	begin := time.Now()
	if size, _ := p.engine.cache.find(module.digest); size == 0 {
		return false, nil
	}
	weight := p.compiledWeight(module)
	if err := p.reserveCode(ctx, weight); err != nil {
		return false, err
	}
	err := p.adoptCompiled(ctx, module, FromCache, begin, weight)
	if errors.Is(err, compile.ErrNotCached) {
		p.logger.Warn("the compiled code in the cache cannot be used and is made anew", "err", err)
		p.engine.cache.forget(module.digest)
		return false, nil
	}
	return err == nil, err
}

// compiledWeight is what the module's code in the cache takes in memory, estimated.
func (p *Plugin) compiledWeight(module *rewritten) int64 {
	size, _ := p.engine.cache.find(module.digest)
	return max(codeFactor*int64(module.size), int64(size))
}

// adoptCompiled makes the code that is in the cache the plugin's. Its weight is reserved. p.mu is held.
func (p *Plugin) adoptCompiled(ctx context.Context, module *rewritten, how string, begin time.Time, weight int64) error {
	code, err := p.build(ctx, module, how, begin, weight)
	if err != nil {
		return err
	}
	p.prepared = true
	p.adopt(code)
	return nil
}

// compile compiles the module in the background, unless that is under way. p.mu is held.
func (p *Plugin) compile(module *rewritten) {
	if p.compiling != nil {
		return
	}
	done := make(chan struct{})
	p.compiling = done
	p.background.Go(func() {
		defer close(done)
		begin := time.Now()
		err := p.engine.cache.compile(p.lifetime, module)
		weight := int64(0)
		if size, _ := p.engine.cache.find(module.digest); size > 0 {
			p.report(err)
			weight = p.compiledWeight(module)
			err = p.reserveCompiled(weight)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.compiling, p.failed = nil, nil
		if weight > 0 && err == nil {
			err = p.adoptCompiled(context.Background(), module, FromCompiler, begin, weight)
		}
		if err == nil {
			return
		}
		p.failed = fmt.Errorf("plugin %s: %w", p.spec.Name, err)
		if p.code != nil { // it stays
			p.prepared = true
			p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty", "err", err)
		}
	})
}

// prepare compiles the plugin, and waits until that is done. It fails if the plugin can be neither compiled nor interpreted.
func (p *Plugin) prepare(ctx context.Context) error {
	done, err := p.beginPrepare(ctx)
	if done == nil || err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code != nil {
		return nil
	}
	return p.load(ctx) // interpreted, since it has been refused
}

// beginPrepare has the plugin compiled if it needs to be. It returns what is closed when that is done, nil if there is nothing to wait for.
func (p *Plugin) beginPrepare(ctx context.Context) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code != nil && p.prepared || p.compiling != nil {
		return p.compiling, nil
	}
	module, err := p.rewrite()
	if err != nil {
		return nil, err
	}
	if loaded, err := p.loadCompiled(ctx, module); loaded || err != nil {
		return nil, err
	}
	if p.refused(module) != nil {
		return nil, p.load(ctx)
	}
	p.compile(module)
	return p.compiling, nil
}

// build takes a module's compiled code from the cache, or reads the module for the interpreter, and links its imports. It began at begin.
// The weight is reserved in the memory budget; if build fails, it is given back.
func (p *Plugin) build(ctx context.Context, module *rewritten, how string, begin time.Time, weight int64) (_ *code, err error) {
	defer func() {
		if err != nil {
			p.engine.budget.give(weight)
		}
	}()
	// The runtime outlives the call that happens to come first.
	ctx = context.WithoutCancel(ctx)
	config, load := compile.Config(p.engine.cache.code), compile.Load
	if how == ByInterpreter {
		config = wazero.NewRuntimeConfigInterpreter().WithCompilationCache(p.engine.cache.code).WithCoreFeatures(compile.Features).WithDebugInfoEnabled(false)
		load = interpret
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := load(ctx, runtime, module.Wasm)
	if err == nil {
		err = p.link(ctx, runtime, compiled)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), runtime.Close(ctx))
	}
	code := &code{
		runtime: runtime, module: compiled, digest: module.digest, globals: module.Globals, interpreted: how == ByInterpreter,
		weight: weight, pool: pool{idleTime: p.idleTime(), most: max(minSessions, p.spec.Limits.Concurrency)},
	}
	code.lasting.Store(module.Lasting != "")
	p.engine.observer.PluginCompiled(p.spec.Name, how, time.Since(begin))
	return code, nil
}

func interpret(ctx context.Context, runtime wazero.Runtime, wasm []byte) (wazero.CompiledModule, error) {
	module, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return module, nil
}

// link makes what a module may import linkable in its runtime.
func (p *Plugin) link(ctx context.Context, runtime wazero.Runtime, module wazero.CompiledModule) error {
	if err := checkMemory(module, p.spec.Limits.Memory); err != nil {
		return err
	}
	if err := linkWASI(ctx, runtime); err != nil {
		return fmt.Errorf("link WASI: %w", err)
	}
	if err := linkMeter(ctx, runtime); err != nil {
		return fmt.Errorf("link the meter: %w", err)
	}
	for _, imports := range append(p.spec.Modules, CoreModule) {
		if err := instantiate(ctx, runtime, imports); err != nil {
			return fmt.Errorf("link %s: %w", imports.Name, err)
		}
	}
	return nil
}

func checkMemory(module wazero.CompiledModule, limit int64) error {
	for _, memory := range module.ExportedMemories() {
		if need := int64(memory.Min()) << 16; need > limit {
			return fmt.Errorf("it needs %s of memory to start and its limit is %s: raise limits.memory", bytesText(need), bytesText(limit))
		}
	}
	return nil
}
