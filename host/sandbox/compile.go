package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/manifest"
)

// rewritten is a plugin's module as it is to run.
type rewritten struct {
	rewrite.Result
	digest  [sha256.Size]byte
	metered bool
	size    int // of the plugin's file
}

// rewrite reads the plugin and rewrites it.
func (p *Plugin) rewrite() (*rewritten, error) {
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
	return &rewritten{*result, sha256.Sum256(result.Wasm), metered, len(original)}, nil
}

// load makes code for a call that waits: compiled code if it is in the cache, else interpreted code, which is there ten times sooner,
// until compiled code takes its place. What lasts longer than a call would be lost then, so such a plugin waits for the compiler.
// p.mu is held.
func (p *Plugin) load(ctx context.Context) error {
	module, err := p.rewrite()
	if err != nil {
		return err
	}
	stateless := p.spec.State == "" || p.spec.State == manifest.StateCall
	if !stateless || !module.metered || p.engine.isReady(module.digest) {
		return p.loadCompiled(ctx, module)
	}
	code, err := p.build(ctx, module, ByInterpreter)
	if err != nil {
		return err
	}
	p.adopt(code)
	p.compile(module)
	return nil
}

func (p *Plugin) loadCompiled(ctx context.Context, module *rewritten) error {
	how := FromCompiler
	if p.engine.isReady(module.digest) {
		how = FromCache
	}
	code, err := p.build(ctx, module, how)
	if err != nil {
		return err
	}
	p.prepared, p.metered = true, module.metered
	p.engine.setReady(module.digest)
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
		p.engine.compiler.Lock() // one after the other: each takes all processors
		code, err := p.build(context.Background(), module, FromCompiler)
		p.engine.compiler.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.compiling, p.failed = nil, err
		if err != nil {
			p.logger.Warn("compile", "err", err)
			return
		}
		p.prepared, p.metered = true, module.metered
		p.engine.setReady(module.digest)
		p.adopt(code)
	})
}

// prepare compiles the plugin, and waits until that is done.
func (p *Plugin) prepare(ctx context.Context) error {
	p.mu.Lock()
	if p.prepared && p.code != nil {
		p.mu.Unlock()
		return nil
	}
	done := p.compiling
	if done == nil {
		module, err := p.rewrite()
		if err != nil || p.engine.isReady(module.digest) {
			if err == nil {
				err = p.loadCompiled(ctx, module)
			}
			p.mu.Unlock()
			return err
		}
		p.compile(module)
		done = p.compiling
	}
	p.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// build compiles a module, or reads it for the interpreter, and links its imports.
func (p *Plugin) build(ctx context.Context, module *rewritten, how string) (*code, error) {
	begin, config := time.Now(), wazero.NewRuntimeConfigCompiler()
	if how == ByInterpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	// The runtime outlives the call that happens to come first.
	ctx = experimental.WithCompilationWorkers(context.WithoutCancel(ctx), runtime.GOMAXPROCS(0))
	config = config.
		WithCompilationCache(p.engine.cache).
		WithCoreFeatures(features).
		WithDebugInfoEnabled(false).
		WithCloseOnContextDone(!module.metered)
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := p.link(ctx, runtime, module.Wasm)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("plugin %s: %w", p.spec.Name, err), runtime.Close(ctx))
	}
	code := &code{
		runtime: runtime, module: compiled, digest: module.digest, metered: module.metered, globals: module.Globals, interpreted: how == ByInterpreter,
		weight: codeFactor * int64(module.size), pool: pool{idleTime: p.idleTime(), most: max(minSessions, p.spec.Limits.Concurrency)},
	}
	code.lasting.Store(module.Lasting != "")
	p.engine.observer.PluginCompiled(p.spec.Name, how, time.Since(begin))
	return code, nil
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

// isReady reports whether the cache has compiled code for a module, as far as is known.
func (e *Engine) isReady(digest [sha256.Size]byte) bool {
	path := e.readyPath(digest)
	if _, ok := e.ready.Load(path); ok {
		return true
	}
	now := time.Now()
	return e.images != "" && os.Chtimes(path, now, now) == nil
}

// setReady notes that the cache has compiled code for a module.
func (e *Engine) setReady(digest [sha256.Size]byte) {
	path := e.readyPath(digest)
	e.ready.Store(path, true)
	if e.images == "" {
		return
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		e.logger.Warn("note what has been compiled", "err", err)
	}
}

// readyPath is that of an empty file that says so.
func (e *Engine) readyPath(digest [sha256.Size]byte) string {
	return filepath.Join(e.images, fmt.Sprintf("%x-%s-%s%s", digest, runtimeVersion(), runtime.GOARCH, readySuffix))
}

const readySuffix = ".compiled"
