package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/host/wasm"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// maxInterpreted bounds the operations of a plugin for the interpreter, which needs operationSize bytes for each in
// this process. It is the size of a plugin of 18 MB made by the Go compiler, and leaves room for the engine of
// componentize-js, which has 5.3 million.
const maxInterpreted = 5_500_000

func (guest *rewritten) interpretable() bool { return guest.operations() <= maxInterpreted }

// loadForCall loads code for a waiting call: compiled code from the cache, or else interpreted code, which is ready ten
// times sooner and is replaced when compiled code is ready. The replacement would lose state, so a plugin with state
// waits for the compiler, and so does a module that is too large for the interpreter: p.code then stays nil and
// p.compiling is set. A module that the compiler has refused stays interpreted. p.mu is held.
func (p *Plugin) loadForCall(ctx context.Context) error {
	guest, err := p.loadCached(ctx)
	if guest == nil || err != nil {
		return err
	}
	return p.loadUncompiled(ctx, guest)
}

// loadCached loads compiled code from the cache. If there is none, it returns the module for the compiler and the
// interpreter. p.mu is held.
func (p *Plugin) loadCached(ctx context.Context) (*rewritten, error) {
	if loaded, err := p.loadOutlined(ctx); loaded || err != nil {
		return nil, err
	}
	guest, err := p.rewrite()
	if err != nil {
		return nil, err
	}
	if loaded, err := p.loadCompiled(ctx, guest); loaded || err != nil {
		return nil, err
	}
	return guest, nil
}

// loadUncompiled is loadForCall for a module that is not in the cache.
func (p *Plugin) loadUncompiled(ctx context.Context, guest *rewritten) error {
	refusal := p.compilationError(guest)
	stays := refusal != nil || p.staysInterpreted(guest)
	stateless := p.spec.State == "" || p.spec.State == manifest.StateCall
	if !stays && !(stateless && guest.interpretable()) {
		p.compileInBackground(guest)
		return nil
	}
	if !guest.interpretable() {
		return p.unusable(fmt.Errorf("%w, and it is too large for the interpreter, with %d operations of at most %d: "+
			"hako plugin check says what to do", refusal, guest.operations(), maxInterpreted))
	}
	weight := codeFactor * int64(guest.Size)
	if stays {
		weight = max(weight, operationSize*int64(guest.operations()))
	}
	if module, refused := p.engine.cache.refused(guest); refused != nil {
		p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty; "+
			"remove the note to have it compiled again",
			"reason", refused.Reason, "note", p.engine.cache.notePath(module.Digest, refusedSuffix))
	}
	if err := p.reserveCode(ctx, weight); err != nil {
		return err
	}
	code, err := p.buildCode(ctx, guest, ByInterpreter, time.Now(), weight)
	if err != nil {
		return err
	}
	if stays {
		p.prepared = true
	} else {
		p.compileInBackground(guest)
	}
	p.installCode(code)
	return nil
}

// staysInterpreted reports whether the plugin is not to be compiled; see Options.Interpret.
func (p *Plugin) staysInterpreted(guest *rewritten) bool {
	return p.engine.interpret && guest.interpretable()
}

// operationSize is the interpreter's memory for one operation, in bytes.
const operationSize = 70

// compilationError returns why the module must not be compiled, or nil: the compiler refused it once, or the last
// compilation failed. p.mu is held.
func (p *Plugin) compilationError(guest *rewritten) error {
	if _, refusal := p.engine.cache.refused(guest); refusal != nil {
		return refusal
	}
	return p.compileErr
}

// loadOutlined loads compiled code from the cache without reading the plugin, and reports whether that was possible. It
// fails if there is no memory for the code. p.mu is held.
func (p *Plugin) loadOutlined(ctx context.Context) (bool, error) {
	guest := p.engine.cache.outline(p.spec.Digest)
	if guest == nil {
		return false, nil
	}
	found, err := p.installCached(ctx, guest)
	switch {
	case found && err == nil:
		return true, nil
	case err != nil && !found:
		return false, err
	}
	p.engine.cache.removeOutline(p.spec.Digest) // reading the plugin reports the cause
	return false, nil
}

// loadCompiled loads compiled code from the cache and reports whether there was any. p.mu is held.
func (p *Plugin) loadCompiled(ctx context.Context, guest *rewritten) (bool, error) {
	found, err := p.installCached(ctx, guest)
	if errors.Is(err, compile.ErrNotCached) {
		p.logger.Warn("the compiled code in the cache is invalid: compiling again", "err", err)
		p.engine.cache.invalidate(guest)
		return false, nil
	}
	if found && err == nil {
		p.saveOutline(guest)
	}
	return found && err == nil, err
}

// saveOutline spares later processes the reading of the plugin.
func (p *Plugin) saveOutline(guest *rewritten) {
	if err := p.engine.cache.saveOutline(p.spec.Digest, guest); err != nil {
		p.logger.Warn("the next start will be slower", "err", err)
	}
}

// installCached installs code that is in the cache, and reports whether it is noted there. If there is no memory for
// it, it reports false and the error. p.mu is held.
func (p *Plugin) installCached(ctx context.Context, guest *rewritten) (found bool, err error) {
	begin := time.Now()
	if _, all := p.engine.cache.compiled(guest); !all {
		return false, nil
	}
	weight := p.compiledWeight(guest)
	if err := p.reserveCode(ctx, weight); err != nil {
		return false, err
	}
	return true, p.installCompiled(ctx, guest, FromCache, begin, weight)
}

// functionSize is wazero's memory for one function beside its code, in bytes.
const functionSize = 128

// compiledWeight estimates the memory of the plugin's code in the cache: the code, the stub and what wazero decodes of
// it, and the data, which is at most the plugin file.
func (p *Plugin) compiledWeight(guest *rewritten) int64 {
	size, _ := p.engine.cache.compiled(guest)
	return int64(size) + 2*int64(guest.stubBytes()) +
		functionSize*int64(guest.functions()) + int64(guest.Size)
}

// installCompiled installs the code in the cache. Its weight is reserved; p.mu is held.
func (p *Plugin) installCompiled(
	ctx context.Context, guest *rewritten, how string, begin time.Time, weight int64,
) error {
	code, err := p.buildCode(ctx, guest, how, begin, weight)
	if err != nil {
		return err
	}
	p.prepared = true
	p.installCode(code)
	return nil
}

// compileInBackground starts compiling the plugin, unless a compilation is running. p.mu is held.
func (p *Plugin) compileInBackground(guest *rewritten) {
	if p.compiling != nil {
		return
	}
	done := make(chan struct{})
	p.compiling = done
	p.background.Go(func() {
		defer close(done)
		begin := time.Now()
		err := p.engine.cache.compile(p.lifetime, guest)
		weight := int64(0)
		_, all := p.engine.cache.compiled(guest)
		if all {
			p.logUnloadError(err)
			weight = p.compiledWeight(guest)
			err = p.reserveCompiled(weight)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.compiling, p.compileErr = nil, nil
		if all && err == nil {
			if err = p.installCompiled(context.Background(), guest, FromCompiler, begin, weight); err == nil {
				p.saveOutline(guest)
			}
		}
		if err == nil {
			return
		}
		p.compileErr = err
		if p.code != nil { // interpreted
			p.prepared = true
			if p.lifetime.Err() == nil { // else it is being closed
				p.logger.Warn("the plugin stays in the interpreter, which is slower by a factor of ten to thirty",
					"err", err)
			}
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
	guest, err := p.loadCached(ctx)
	if guest == nil || err != nil {
		return nil, err
	}
	if p.staysInterpreted(guest) || p.compilationError(guest) != nil {
		return nil, p.loadUncompiled(ctx, guest)
	}
	p.compileInBackground(guest)
	return p.compiling, nil
}

// buildCode loads a plugin's compiled code from the cache, or the plugin into the interpreter, and links its imports.
// begin is the time at which loading began. The weight is reserved in the memory budget; buildCode releases it if it
// fails.
func (p *Plugin) buildCode(
	ctx context.Context, guest *rewritten, how string, begin time.Time, weight int64,
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
			WithCoreFeatures(wasm.Features).WithDebugInfoEnabled(false)
		load = interpret
	}
	code := &code{
		runtime: wazero.NewRuntimeWithConfig(ctx, config), digest: guest.Digest,
		interpreted: how == ByInterpreter, weight: weight,
		pool: pool{idleTime: p.instanceIdleTime(), maxIdle: max(minSessions, p.spec.Limits.Concurrency)},
	}
	if err = code.load(ctx, guest, load); err == nil {
		err = p.linkImports(ctx, code, guest.component)
	} else if how == ByInterpreter {
		err = p.unusable(err)
	}
	if err != nil {
		return nil, errors.Join(p.named(err), code.closeModules(ctx))
	}
	if !code.interpreted {
		code.data.source = guest.Source
	}
	code.singleUse.Store(guest.unrestorable() != "")
	p.engine.observer.CodeLoaded(p.spec.Name, how, time.Since(begin))
	return code, nil
}

// load loads the modules of a plugin with the function load.
func (code *code) load(ctx context.Context, guest *rewritten,
	load func(context.Context, wazero.Runtime, *rewrittenModule) (wazero.CompiledModule, error),
) error {
	for i := range guest.Modules {
		source := &guest.Modules[i]
		compiled, err := load(ctx, code.runtime, source)
		if err != nil {
			return err
		}
		exports, err := rewrite.Exports(source.stub)
		if err != nil {
			return err
		}
		code.modules = append(code.modules, module{link.Module{Compiled: compiled, Exports: exports,
			Elements: source.Elements}, source.Globals, source.Memory})
	}
	return nil
}

func interpret(ctx context.Context, runtime wazero.Runtime, module *rewrittenModule) (wazero.CompiledModule, error) {
	code, err := runtime.CompileModule(ctx, module.Wasm)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return code, nil
}

// linkImports links everything that the plugin may import. c is nil for a core module.
func (p *Plugin) linkImports(ctx context.Context, code *code, c *component.Component) error {
	if err := checkStartMemory(code.startMemory(nil), p.spec.Limits.Memory); err != nil {
		return p.unusable(err)
	}
	runtime := code.runtime
	if err := linkMeter(ctx, runtime); err != nil {
		return fmt.Errorf("link the meter: %w", err)
	}
	if c != nil {
		return p.unusable(p.linkComponent(ctx, code, c))
	}
	if err := linkWASI(ctx, runtime); err != nil {
		return fmt.Errorf("link WASI: %w", err)
	}
	for _, imports := range append(p.spec.Modules, CoreModule) {
		if err := linkModule(ctx, runtime, imports); err != nil {
			return fmt.Errorf("link %s: %w", imports.Name, err)
		}
	}
	return nil
}
