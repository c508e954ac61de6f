// Package wasm runs WebAssembly components on wazero, which has none of its own, within limits on computing and memory.
//
// Load decodes and compiles a component, Component.Instantiate makes an instance, and Instance.Call calls one of its
// exports. The packages below do the work and can be used alone: wasmbin reads the binary format, component decodes
// components, rewrite counts the steps of modules, link links the core modules of a component, canon converts values
// (the canonical ABI), and stack reads stack traces.
package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// Errors of a call that exceeds a limit of Options.
var (
	ErrSteps  = errors.New("the call takes more steps than Options.Steps")
	ErrMemory = errors.New("the call passes more values at once than fit into Options.MemoryPages")
)

// Options configures Load. A nil *Options means all defaults.
type Options struct {
	// Import returns the function of an interface that the component imports, for example
	// ("wasi:cli/environment@0.2.6", "get-arguments"), or nil if the host does not have that function: then the guest
	// traps when it calls it. An error refuses the component. A nil Import returns nil for all functions.
	Import func(instance, function string) (link.HostFunc, error)
	// Steps bounds the computing of a call, with that of its host functions, in the steps of package fuel. Zero means a
	// billion, which is some seconds.
	Steps int64
	// MemoryPages bounds each linear memory, and the values that a call passes at once, in 64 KiB pages. Zero means 256.
	MemoryPages uint32
}

// Features are the features that core modules may use: the core specification 2.0, tail calls, and constant expressions
// that add and multiply, which position-independent code such as CPython's needs.
const Features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// quantum is the number of steps after which a guest gives control to the host.
const quantum = 1 << 20

// Component is a compiled component. It is safe for concurrent use.
type Component struct {
	options Options
	runtime wazero.Runtime
	program *link.Program
	modules []link.Module
}

// Load decodes, rewrites and compiles a component. The error names what is malformed, of an unsupported feature or
// refused by Options.Import. The caller closes the Component.
func Load(ctx context.Context, data []byte, options *Options) (*Component, error) {
	c := &Component{}
	if options != nil {
		c.options = *options
	}
	if c.options.Import == nil {
		c.options.Import = func(string, string) (link.HostFunc, error) { return nil, nil }
	}
	if c.options.Steps == 0 {
		c.options.Steps = 1_000_000_000
	}
	if c.options.MemoryPages == 0 {
		c.options.MemoryPages = 256
	}
	c.runtime = wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithMemoryLimitPages(c.options.MemoryPages).
			WithCoreFeatures(Features))
	if err := c.load(ctx, data); err != nil {
		return nil, errors.Join(fmt.Errorf("load a component: %w", err), c.Close(ctx))
	}
	return c, nil
}

func (c *Component) load(ctx context.Context, data []byte) error {
	decoded, err := component.Decode(data)
	if err != nil {
		return err
	}
	if _, err := link.Check(decoded); err != nil {
		return err
	}
	growth := rewrite.MaxElements / max(1, len(decoded.CoreModules()))
	_, err = component.RewriteModules(data, func(_ int, module []byte) ([]byte, error) {
		return module, c.compile(ctx, module, growth)
	})
	if err != nil {
		return err
	}
	_, err = c.runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	if err != nil {
		return err
	}
	c.program, err = link.Compile(ctx, decoded, &link.Options{
		Runtime: c.runtime, Modules: c.modules, Import: c.options.Import,
		Current: func(ctx context.Context) *link.Instance { return running(ctx).linked }})
	return err
}

// compile adds a core module.
func (c *Component) compile(ctx context.Context, module []byte, growth int) error {
	rewritten, err := rewrite.Module(module, quantum, growth)
	if err != nil {
		return err
	}
	exports, err := rewrite.Exports(rewritten.Wasm)
	if err != nil {
		return err
	}
	compiled, err := c.runtime.CompileModule(ctx, rewritten.Wasm)
	c.modules = append(c.modules, link.Module{Compiled: compiled, Exports: exports, Elements: rewritten.Elements})
	return err
}

// Close frees the code, after all instances were closed.
func (c *Component) Close(ctx context.Context) error {
	err := c.runtime.Close(ctx)
	if c.program != nil {
		err = errors.Join(err, c.program.Close(ctx))
	}
	return err
}

// Instance is an instance of a Component. It must not be used by two goroutines at once.
type Instance struct {
	component *Component
	linked    *link.Instance
	// steps and memory are left of the call's.
	steps, memory int64
}

type runningKey struct{}

// running returns the instance whose call has this context.
func running(ctx context.Context) *Instance { return ctx.Value(runningKey{}).(*Instance) }

// Instantiate makes an instance, whose start counts as a call. The caller closes it.
func (c *Component) Instantiate(ctx context.Context) (*Instance, error) {
	i := &Instance{component: c}
	i.linked = c.program.NewInstance(link.Host{
		Instantiate: func(ctx context.Context, id int) (api.Module, error) {
			return c.runtime.InstantiateModule(ctx, c.modules[id].Compiled,
				wazero.NewModuleConfig().WithName("").WithStartFunctions())
		},
		Charge:      i.charge,
		Reserve:     i.reserve,
		Release:     func(bytes int64) { i.memory += bytes },
		CheckResult: func(int64) error { return nil }, // Reserve bounds it
	})
	if err := i.linked.Start(i.begin(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("instantiate a component: %w", err), i.Close())
	}
	return i, nil
}

// begin returns the context of a call, which has all that Options allow.
func (i *Instance) begin(ctx context.Context) context.Context {
	i.steps, i.memory = i.component.options.Steps, int64(i.component.options.MemoryPages)<<16
	return context.WithValue(ctx, runningKey{}, i)
}

// Call calls an export: "run", or "interface#run" for one of an interface. Arguments and result are values as package
// component describes them. The error matches ErrSteps or ErrMemory if the call exceeds a limit, or that of ctx if ctx
// ends. After an error the instance is unusable.
func (i *Instance) Call(ctx context.Context, name string, args ...any) (any, error) {
	result, err := i.linked.Call(i.begin(ctx), name, args)
	i.linked.EndCall()
	return result, err
}

// Close closes the instance. No guest code runs.
func (i *Instance) Close() error { return i.linked.Close() }

func (i *Instance) charge(steps int64) {
	if i.steps -= steps; i.steps < 0 {
		panic(ErrSteps)
	}
}

func (i *Instance) reserve(bytes int64) error {
	if i.memory -= bytes; i.memory < 0 {
		return ErrMemory
	}
	return nil
}

// refuel grants a module another quantum when it has used up its fuel.
func refuel(ctx context.Context, module api.Module, _ []uint64) {
	if err := ctx.Err(); err != nil {
		panic(err)
	}
	fuel := module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal)
	running(ctx).charge(quantum - int64(fuel.Get()))
	fuel.Set(quantum)
}
