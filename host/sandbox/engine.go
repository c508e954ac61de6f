// Package sandbox runs guests in WebAssembly, inside hard limits. An Engine holds what all plugins share: compiled code
// on disk, the memory budget and the processors. Engine.Load makes a Plugin of a Spec (code, granted import modules,
// mounts, limits), Plugin.Prepare compiles it, and Plugin.Call runs one request. An Adapter adapts guests of another
// ABI.
//
// Every call runs in an instance that no other call uses at the same time and that is restored to its state after start
// before the next call. Only the import modules, interfaces and mounts in the Spec are linked. ABI 1 (docs/abi.md) is
// implemented here; host functions are implemented by the brokers. An instance of a component consists of several core
// modules, which package link links. Besides it, host/wasm and brokers/file use the types of wazero.
package sandbox

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
)

// Options configures an Engine. A nil *Options means all defaults.
type Options struct {
	// CacheDir holds compiled code and images of started plugins between runs. It is created if missing. Empty means a
	// temporary directory that Engine.Close removes, without images: every process then compiles again (seconds per
	// plugin).
	CacheDir string
	// MemoryBudget bounds the memory of all plugins together, in bytes: linear memories, images, the estimated size of
	// compiled code, and large requests and answers that the host holds. When it is used up, idle memory is freed
	// first; then calls wait up to Limits.QueueWait. Zero means 2 GiB.
	MemoryBudget int64
	// Processors limits the guests that compute at the same time. Zero means GOMAXPROCS.
	Processors int
	// Interpret runs plugins in the interpreter and compiles only those that are too large for it: a new version
	// answers sooner, and computes slower by a factor of ten to thirty. Compiled code in the cache is used
	// nevertheless.
	Interpret bool
	// CompileGrace bounds how long Plugin.Close waits for a running compilation, so that the next process finds its
	// code in the cache. Zero means 10s, which suffices for an ordinary plugin on an idle machine.
	CompileGrace time.Duration
	// Logger receives the records of guests and reasons for which instances were discarded. Nil discards all.
	Logger *slog.Logger
	// Redact removes secrets from a guest's record before it is logged; a record that becomes empty is not logged. It
	// is called concurrently. Nil means no redaction.
	Redact func(text string) string
	// Observer is notified of the engine's activity. It may be nil.
	Observer Observer
}

// Engine compiles plugins and holds their shared state. It is safe for concurrent use.
type Engine struct {
	cache  *codeCache
	images string // the directory with images; empty means none
	// interpret is Options.Interpret.
	interpret bool
	logger    *slog.Logger
	redact    func(string) string
	observer  Observer
	// started and epoch are the same moment: started has the monotonic clock, epoch is Unix time in nanoseconds.
	started time.Time
	epoch   int64
	budget  budget
	// scheduler shares the processors among all plugins.
	scheduler *scheduler
	// lifetime is the context of compilations, which stopCompiling ends.
	lifetime      context.Context
	stopCompiling context.CancelFunc
	// closeGrace is Options.CompileGrace.
	closeGrace time.Duration

	// mu guards plugins.
	mu      sync.Mutex
	plugins map[*Plugin]struct{}
}

const defaultCompileGrace = 10 * time.Second

const defaultBudget = 2 << 30

// initRuntime creates one runtime before any other: wazero computes its version at first use, without a lock.
var initRuntime sync.Once

// New returns an Engine. It fails if the cache directory cannot be created or written.
func New(options *Options) (*Engine, error) {
	if options == nil {
		options = &Options{}
	}
	e := &Engine{
		logger: options.Logger, redact: options.Redact, started: time.Now(),
		plugins: map[*Plugin]struct{}{}, closeGrace: cmp.Or(options.CompileGrace,
			defaultCompileGrace), interpret: options.Interpret,
	}
	e.lifetime, e.stopCompiling = context.WithCancel(context.Background())
	e.budget.limit, e.budget.reclaim = cmp.Or(options.MemoryBudget, defaultBudget), e.reclaim
	e.scheduler = newScheduler(cmp.Or(options.Processors, runtime.GOMAXPROCS(0)))
	e.epoch = e.started.UnixNano()
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	initRuntime.Do(func() { _ = wazero.NewRuntime(context.Background()).Close(context.Background()) })
	if e.observer = options.Observer; e.observer == nil {
		e.observer = noopObserver{}
	}
	var err error
	if e.cache, err = newCodeCache(options.CacheDir); err != nil {
		return nil, err
	}
	if e.cache.private == nil {
		e.images = e.cache.notes
	}
	return e, nil
}

// Nanotime is the guests' monotonic clock. It starts at the wall clock, because an image may come from an earlier
// process.
func (e *Engine) Nanotime() int64 { return e.epoch + int64(time.Since(e.started)) }

// Close frees the compiled code. All plugins must be closed first.
func (e *Engine) Close() error {
	e.stopCompiling()
	return e.cache.close()
}

// Spec describes a plugin to load: its code, what is linked to it, and its limits.
type Spec struct {
	// Name is the plugin's, for logs and errors.
	Name string
	// Wasm returns the plugin file. It is called when the code is loaded and the cache has none.
	Wasm func() ([]byte, error)
	// Digest is the plugin file's, "sha256:" and 64 hexadecimal digits. If it is empty, Wasm is called at each load.
	Digest string
	// Modules are the import modules of the granted permissions. CoreModule is always added.
	Modules []broker.Module
	// Interfaces are the interfaces that a component may import.
	Interfaces []broker.Interface
	// Adapter passes requests to a guest with another ABI. Nil means ABI 1, which no component
	// has.
	Adapter Adapter
	// Mounts are the granted directories. They must stay open until the plugin is closed.
	Mounts []*file.Mount
	// Clock is the guest's wall clock. Nil means the real one.
	Clock func() time.Time
	// State is the lifetime of the guest's state. Empty means manifest.StateCall.
	State manifest.State
	// Limits apply to each call. Zero fields mean the values of manifest.DefaultLimits.
	Limits manifest.Limits
}

// Load returns a Plugin. Its code is compiled by the first call or by Prepare.
func (e *Engine) Load(spec Spec) *Plugin {
	spec.Limits = spec.Limits.Or(manifest.DefaultLimits)
	p := &Plugin{
		engine: e,
		spec:   spec,
		logger: e.logger.With("plugin", spec.Name),
		gate:   limit.NewGate(spec.Limits),
	}
	p.lifetime, p.cancelLifetime = context.WithCancel(e.lifetime)
	if spec.State == manifest.StateSession {
		p.sessions = newSessions(spec.Limits.Concurrency)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plugins[p] = struct{}{}
	return p
}

// Compiling returns the names of plugins that are being compiled, sorted.
func (e *Engine) Compiling() []string {
	e.mu.Lock()
	plugins := slices.Collect(maps.Keys(e.plugins))
	e.mu.Unlock() // a plugin locks itself first
	var names []string
	for _, p := range plugins {
		if p.isCompiling() {
			names = append(names, p.spec.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// StopCompiling ends running compilations, for which Plugin.Close would wait, and later ones. Their results are lost.
func (e *Engine) StopCompiling() { e.stopCompiling() }

func (e *Engine) remove(p *Plugin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.plugins, p)
}
