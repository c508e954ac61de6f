package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox/compile"
)

// rewritten is a plugin's module after rewriting. Wasm is nil if it comes from an outline.
type rewritten struct {
	rewrite.Result
	Digest [sha256.Size]byte // of Wasm
	Source [sha256.Size]byte // digest of the plugin file
	Size   int               // of the plugin file, in bytes
	stub   []byte
}

func (p *Plugin) rewrite() (*rewritten, error) {
	original, err := p.spec.Wasm()
	if err != nil {
		return nil, fmt.Errorf("plugin %s: read: %w", p.spec.Name, err)
	}
	result, err := rewrite.Module(original, quantum)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	}
	if result.Unrestorable != "" {
		p.logger.Debug("each call gets a fresh instance", "reason", result.Unrestorable)
	}
	stub, err := rewrite.Stub(result.Wasm)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	}
	return &rewritten{*result, sha256.Sum256(result.Wasm), sha256.Sum256(original), len(original), stub}, nil
}

// maxInterpreted bounds the operations of a module for the interpreter, which needs operationSize bytes for each in
// this process. It is the size of a plugin of 12 MB made by the Go compiler.
const maxInterpreted = 4 << 20

func (module *rewritten) interpretable() bool { return module.Operations <= maxInterpreted }

// loadForCall loads code for a waiting call: compiled code from the cache, or else interpreted code, which is ready ten
// times sooner and is replaced when compiled code is ready. The replacement would lose state, so a plugin with state
// waits for the compiler, and so does a module that is too large for the interpreter: p.code then stays nil and
// p.compiling is set. A module that the compiler has refused stays interpreted. p.mu is held.
func (p *Plugin) loadForCall(ctx context.Context) error {
	if loaded, err := p.loadOutlined(ctx); loaded || err != nil {
		return err
	}
	module, err := p.rewrite()
	if err != nil {
		return err
	}
	if loaded, err := p.loadCompiled(ctx, module); loaded || err != nil {
		return err
	}
	refusal := p.compilationError(module)
	stateless := p.spec.State == "" || p.spec.State == manifest.StateCall
	if refusal == nil && !(stateless && module.interpretable()) {
		p.compileInBackground(module)
		return nil
	}
	if !module.interpretable() {
		return fmt.Errorf("plugin %s: %w, and it is too large for the interpreter, with %d operations of at most %d: "+
			"hako plugin check says what to do", p.spec.Name, refusal, module.Operations, maxInterpreted)
	}
	weight := codeFactor * int64(module.Size)
	if refusal != nil {
		weight = max(weight, operationSize*int64(module.Operations))
	}
	if err := p.reserveCode(ctx, weight); err != nil {
		return err
	}
	code, err := p.buildCode(ctx, module, ByInterpreter, time.Now(), weight)
	if err != nil {
		return err
	}
	if refusal == nil {
		p.compileInBackground(module)
	} else {
		p.prepared = true
	}
	p.installCode(code)
	return nil
}

// operationSize is the interpreter's memory for one operation, in bytes.
const operationSize = 70

// compilationError returns why the module must not be compiled, or nil: the compiler refused it once, or the last
// compilation failed. p.mu is held.
func (p *Plugin) compilationError(module *rewritten) error {
	if _, refusal := p.engine.cache.lookup(module.Digest); refusal != nil {
		p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty; "+
			"remove the note to have it compiled again",
			"reason", refusal.Reason, "note", p.engine.cache.notePath(module.Digest, refusedSuffix))
		return refusal
	}
	return p.compileErr
}

// loadOutlined loads compiled code from the cache without reading the plugin, and reports whether that was possible. It
// fails if there is no memory for the code. p.mu is held.
func (p *Plugin) loadOutlined(ctx context.Context) (bool, error) {
	module := p.engine.cache.outline(p.spec.Digest)
	if module == nil {
		return false, nil
	}
	found, err := p.installCached(ctx, module)
	switch {
	case found && err == nil:
		return true, nil
	case err != nil && !found:
		return false, err
	}
	p.engine.cache.removeOutline(p.spec.Digest) // whoever reads the plugin finds out what is wrong
	return false, nil
}

// loadCompiled loads compiled code from the cache and reports whether there was any. p.mu is held.
func (p *Plugin) loadCompiled(ctx context.Context, module *rewritten) (bool, error) {
	found, err := p.installCached(ctx, module)
	if errors.Is(err, compile.ErrNotCached) {
		p.logger.Warn("the compiled code in the cache cannot be used and is made anew", "err", err)
		p.engine.cache.invalidate(module.Digest)
		return false, nil
	}
	if found && err == nil {
		p.saveOutline(module)
	}
	return found && err == nil, err
}

// saveOutline spares later processes the reading of the plugin.
func (p *Plugin) saveOutline(module *rewritten) {
	if err := p.engine.cache.saveOutline(p.spec.Digest, module); err != nil {
		p.logger.Warn("the next start will be slower", "err", err)
	}
}

// installCached installs code that is in the cache, and reports whether it is noted there. If there is no memory for it,
// it reports false and the error. p.mu is held.
func (p *Plugin) installCached(ctx context.Context, module *rewritten) (found bool, err error) {
	begin := time.Now()
	if size, _ := p.engine.cache.lookup(module.Digest); size == 0 {
		return false, nil
	}
	weight := p.compiledWeight(module)
	if err := p.reserveCode(ctx, weight); err != nil {
		return false, err
	}
	return true, p.installCompiled(ctx, module, FromCache, begin, weight)
}

// functionSize is wazero's memory for one function beside its code, in bytes.
const functionSize = 128

// compiledWeight estimates the memory of the module's code in the cache: the code, the stub and what wazero decodes of
// it, and the data, which is at most the plugin file.
func (p *Plugin) compiledWeight(module *rewritten) int64 {
	size, _ := p.engine.cache.lookup(module.Digest)
	return int64(size) + 2*int64(len(module.stub)) + functionSize*int64(module.Functions) + int64(module.Size)
}

// installCompiled installs the code in the cache. Its weight is reserved; p.mu is held.
func (p *Plugin) installCompiled(
	ctx context.Context, module *rewritten, how string, begin time.Time, weight int64,
) error {
	code, err := p.buildCode(ctx, module, how, begin, weight)
	if err != nil {
		return err
	}
	p.prepared = true
	p.installCode(code)
	return nil
}

// compileInBackground starts compiling the module, unless a compilation is running. p.mu is held.
func (p *Plugin) compileInBackground(module *rewritten) {
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
		if size, _ := p.engine.cache.lookup(module.Digest); size > 0 {
			p.logUnloadError(err)
			weight = p.compiledWeight(module)
			err = p.reserveCompiled(weight)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.compiling, p.compileErr = nil, nil
		if weight > 0 && err == nil {
			err = p.installCompiled(context.Background(), module, FromCompiler, begin, weight)
			p.saveOutline(module)
		}
		if err == nil {
			return
		}
		p.compileErr = err
		if p.code != nil { // interpreted
			p.prepared = true
			p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty",
				"err", err)
		}
	})
}

// prepare is Prepare, for a plugin that is not closed.
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
	return p.loadForCall(ctx) // interpreted, since it has been refused
}

// beginPrepare starts a compilation if necessary. It returns a channel that is closed when it ends, nil if none runs.
func (p *Plugin) beginPrepare(ctx context.Context) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code != nil && p.prepared || p.compiling != nil {
		return p.compiling, nil
	}
	if loaded, err := p.loadOutlined(ctx); loaded || err != nil {
		return nil, err
	}
	module, err := p.rewrite()
	if err != nil {
		return nil, err
	}
	if loaded, err := p.loadCompiled(ctx, module); loaded || err != nil {
		return nil, err
	}
	if p.compilationError(module) != nil {
		return nil, p.loadForCall(ctx)
	}
	p.compileInBackground(module)
	return p.compiling, nil
}

// buildCode loads a module's compiled code from the cache, or the module into the interpreter, and links its imports.
// begin is when loading began. The weight is reserved in the memory budget; buildCode releases it if it fails.
func (p *Plugin) buildCode(
	ctx context.Context, module *rewritten, how string, begin time.Time, weight int64,
) (_ *code, err error) {
	defer func() {
		if err != nil {
			p.engine.budget.release(weight)
		}
	}()
	// The runtime outlives the call that loads it.
	ctx = context.WithoutCancel(ctx)
	config, load := compile.Config(p.engine.cache.code), p.engine.cache.load
	if how == ByInterpreter {
		config = wazero.NewRuntimeConfigInterpreter().WithCompilationCache(p.engine.cache.code).
			WithCoreFeatures(compile.Features).WithDebugInfoEnabled(false)
		load = interpret
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := load(ctx, runtime, module)
	if err == nil {
		err = p.linkImports(ctx, runtime, compiled)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), runtime.Close(ctx))
		if compiled != nil {
			err = errors.Join(err, compiled.Close(ctx))
		}
		return nil, err
	}
	code := &code{
		runtime: runtime, module: compiled, digest: module.Digest, globals: module.Globals,
		interpreted: how == ByInterpreter, weight: weight,
		pool: pool{idleTime: p.instanceIdleTime(), maxIdle: max(minSessions, p.spec.Limits.Concurrency)},
	}
	if !code.interpreted {
		code.data.source = module.Source
	}
	code.singleUse.Store(module.Unrestorable != "")
	p.engine.observer.PluginCompiled(p.spec.Name, how, time.Since(begin))
	return code, nil
}

func interpret(ctx context.Context, runtime wazero.Runtime, module *rewritten) (wazero.CompiledModule, error) {
	code, err := runtime.CompileModule(ctx, module.Wasm)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return code, nil
}

// linkImports links everything that the module may import.
func (p *Plugin) linkImports(ctx context.Context, runtime wazero.Runtime, module wazero.CompiledModule) error {
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
		if err := linkModule(ctx, runtime, imports); err != nil {
			return fmt.Errorf("link %s: %w", imports.Name, err)
		}
	}
	return nil
}

func checkMemory(module wazero.CompiledModule, most int64) error {
	for _, memory := range module.ExportedMemories() {
		if need := int64(memory.Min()) << 16; need > most {
			return fmt.Errorf("it needs %s of memory to start and its limit is %s: raise limits.memory",
				limit.Bytes(need), limit.Bytes(most))
		}
	}
	return nil
}
