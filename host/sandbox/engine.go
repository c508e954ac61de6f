// Package sandbox runs guests. It is the only package that knows the Wasm runtime.
//
// A plugin is compiled once; every call runs in an instance of its own, with the import modules and mounts it was granted and
// nothing else, inside hard limits. The native contract (docs/abi.md) lives here; what the host does for a guest lives in
// the brokers.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/broker/file"
	"github.com/hako-run/hako/host/manifest"
)

// Options configures an Engine. A nil *Options means all defaults.
type Options struct {
	// CacheDir keeps compiled code and images of started plugins between runs. It is made if missing. Empty means a temporary directory that
	// goes with the engine, so that every start compiles anew (seconds per plugin), and no images.
	CacheDir string
	// MemoryBudget bounds, in bytes, the memory of all plugins together: linear memories of instances, images, and compiled code as it
	// is estimated, and what the host holds of large requests and answers. What is idle is given up first, then calls wait as long as for a slot. Zero means 2 GiB.
	MemoryBudget int64
	// Processors is how many guests compute at the same moment. Zero means GOMAXPROCS.
	Processors int
	// Logger receives what guests log and why instances were thrown away. Nil discards it.
	Logger *slog.Logger
	// Redact changes what guests log before it is, to leave out what nobody should read there; an empty text is not logged. It is called from
	// many goroutines at once. Nil leaves all as it is.
	Redact func(text string) string
	// Observer may be nil.
	Observer Observer
}

// Engine compiles plugins and holds what they share. It is safe for concurrent use.
type Engine struct {
	cache    *codeCache
	images   string // the directory with images; empty means none
	logger   *slog.Logger
	redact   func(string) string
	observer Observer
	// started and epoch are one moment, on the process's monotonic clock and the wall clock.
	started time.Time
	epoch   int64
	budget  budget
	// scheduler shares the processors among all plugins.
	scheduler *scheduler
	// closeGrace is how long the Close of a plugin waits for the compiler.
	closeGrace time.Duration

	// mu guards plugins.
	mu      sync.Mutex
	plugins map[*Plugin]struct{}
}

// compileGrace is enough for the code of an ordinary plugin, so that the next process finds it in the cache.
const compileGrace = 10 * time.Second

// defaultBudget is the memory of all plugins, in bytes.
const defaultBudget = 2 << 30

// initRuntime makes a runtime once, alone: wazero works out its own version at the first use, in a variable without a lock.
var initRuntime sync.Once

// New returns an Engine. It fails if the cache directory cannot be made or written.
func New(options *Options) (*Engine, error) {
	if options == nil {
		options = &Options{}
	}
	e := &Engine{logger: options.Logger, redact: options.Redact, started: time.Now(), plugins: map[*Plugin]struct{}{}, closeGrace: compileGrace}
	e.budget.limit, e.budget.reclaim = cmp.Or(options.MemoryBudget, defaultBudget), e.reclaim
	e.scheduler = newScheduler(cmp.Or(options.Processors, runtime.GOMAXPROCS(0)))
	e.epoch = e.started.UnixNano()
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	initRuntime.Do(func() { _ = wazero.NewRuntime(context.Background()).Close(context.Background()) })
	if e.observer = options.Observer; e.observer == nil {
		e.observer = unobserved{}
	}
	var err error
	if e.cache, err = newCodeCache(options.CacheDir); err != nil {
		return nil, err
	}
	if !e.cache.private {
		e.images = e.cache.notes
	}
	return e, nil
}

// nanotime is the guests' monotonic clock. It goes on from one process to the next, since an image may be older than the process.
func (e *Engine) nanotime() int64 { return e.epoch + int64(time.Since(e.started)) }

// Close frees the compiled code. Plugins must be closed before.
func (e *Engine) Close() error { return e.cache.close() }

// Spec is one plugin as it may run: its code, what is linked, and its limits.
type Spec struct {
	// Name is the plugin's, for logs and errors.
	Name string
	// Wasm gives the plugin file when it is to be compiled.
	Wasm func() ([]byte, error)
	// Modules are the import modules of the granted permissions; the core module is always there.
	Modules []broker.Module
	// Contract is how requests reach a guest that does not speak ABI 1. Nil means ABI 1.
	Contract Contract
	// Mounts are the granted directories. They must stay open until the plugin is closed.
	Mounts []*file.Mount
	// Clock is the guest's wall clock. Nil means the real one.
	Clock func() time.Time
	// State says how long what the guest remembers lives. Empty means manifest.StateCall.
	State manifest.State
	// Limits are in force with every zero filled from manifest.DefaultLimits.
	Limits manifest.Limits
}

// Load makes a Plugin of spec. Nothing is compiled yet: the first call does that, or Prepare.
func (e *Engine) Load(spec Spec) *Plugin {
	spec.Limits = spec.Limits.Or(manifest.DefaultLimits)
	p := &Plugin{
		engine: e,
		spec:   spec,
		logger: e.logger.With("plugin", spec.Name),
		gate:   newGate(spec.Limits),
	}
	p.lifetime, p.end = context.WithCancel(context.Background())
	if spec.State == manifest.StateSession {
		p.sessions = newSessions(spec.Limits.Concurrency)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plugins[p] = struct{}{}
	return p
}

func (e *Engine) remove(p *Plugin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.plugins, p)
}

// ErrClosed is returned by calls on a closed plugin.
var ErrClosed = errors.New("the plugin has been removed")
