package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasm/rewrite"
	"github.com/hako-run/hako/pdk/abi"
)

// instance is an instance of a plugin. It serves one call at a time.
type instance struct {
	plugin *Plugin
	// cores are its core modules, in the order in which they were instantiated. A core plugin has one.
	cores    []*core
	memories memories
	// linked is nil for a core plugin.
	linked *link.Instance
	entry  api.Function
	files  *file.Handles
	// descriptors is the number of descriptors after start: standard streams, mounts and "/". descriptorsChanged is
	// true once the guest has changed one of them.
	descriptors        uint32
	descriptorsChanged bool
	// notCopyable explains why the instance must not be copied after its start; empty means that it may.
	notCopyable string
	// started is true once the start has ended.
	started bool
	// call is the running call, or the call that waits for the start. It is nil in between: an instance may wait for its
	// next call for long, and would keep the request, the response and the context of the last one.
	call *call
	// since is the time at which the last call ended.
	since time.Time
	// hasState is true if the instance holds state of earlier calls, which belong to tenant.
	hasState bool
	tenant   string
}

// core is an instantiated core module.
type core struct {
	module api.Module
	fuel   api.MutableGlobal
	// granted is the value of fuel when its steps were counted last.
	granted int64
	globals []api.MutableGlobal
}

// grant sets the fuel.
func (c *core) grant(steps int64) {
	c.granted = steps
	c.fuel.Set(uint64(steps))
}

// settle returns the steps that have not been counted.
func (c *core) settle() int64 {
	left := int64(c.fuel.Get())
	used := c.granted - left
	c.granted = left
	return used
}

type instanceKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(instanceKey{}).(*instance).call }

// instantiate creates an instance in its state after start: by starting it, or from the image if there is one. The
// steps and the time are charged to the waiting call.
func (p *Plugin) instantiate(ctx context.Context, code *code, image *image, c *call) (_ *instance, err error) {
	begin, need := time.Now(), code.startMemory(image)
	if err := p.engine.budget.reserveWithin(ctx, p.spec.Name, need, c.memoryWait); err != nil {
		return nil, err
	}
	i := &instance{plugin: p, files: file.NewHandles(p.spec.Limits.OpenFiles), call: c,
		memories:    memories{limit: uint64(p.spec.Limits.Memory), budget: &p.engine.budget, spare: uint64(need)},
		descriptors: uint32(3 + len(p.spec.Mounts) + 1)}
	c.instance = i
	defer func() {
		if err != nil {
			c.refused = i.memories.refused
			err = errors.Join(err, i.close(CloseFailed))
		}
	}()
	var data [][]rewrite.Segment
	if image == nil {
		if data, err = code.data.load(p); err != nil {
			return nil, err
		}
	}
	ctx = context.WithValue(ctx, instanceKey{}, i)
	i.files.Begin(ctx, c.Spend)
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return nil, err
	}
	if err := i.link(ctx, code, image, data); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if image != nil {
		err = image.initialize(i)
	} else if p.spec.Adapter != nil {
		err = p.spec.Adapter.Start(ctx, &Guest{c})
	}
	if err != nil {
		return nil, err
	}
	i.started = true
	how := FromStart
	if image != nil {
		how = FromImage
	}
	p.engine.observer.InstanceMade(p.spec.Name, how, time.Since(begin))
	return i, nil
}

// link instantiates the modules. data has the data segments of each that its code was loaded without.
func (i *instance) link(ctx context.Context, code *code, image *image, data [][]rewrite.Segment) error {
	if code.program != nil {
		return i.startComponent(ctx, code, data)
	}
	module, err := i.instantiate(ctx, code, 0, data, i.plugin.config(i, code, image))
	if err != nil {
		return err
	}
	if i.entry = module.ExportedFunction(abi.Entry); i.entry == nil && i.plugin.spec.Adapter == nil {
		return &catalog.GuestError{Plugin: i.plugin.spec.Name, Reason: "does not export " + abi.Entry}
	}
	return nil
}

// instantiate instantiates a module of code.
func (i *instance) instantiate(
	ctx context.Context, code *code, id int, data [][]rewrite.Segment, config wazero.ModuleConfig,
) (api.Module, error) {
	source := &code.modules[id]
	var memory *linearMemory
	if source.memory >= 0 {
		var segments []rewrite.Segment
		if data != nil {
			segments = data[id]
		}
		var err error
		if memory, err = i.memories.add(segments); err != nil {
			return nil, err
		}
		// The runtime panics if it does not get the memory that the module starts with.
		if memory.Reallocate(uint64(source.memory)) == nil {
			return nil, errors.New("there is not enough memory for all its modules")
		}
		allocate := func(_, _ uint64) experimental.LinearMemory { return memory }
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate))
	}
	module, err := code.runtime.InstantiateModule(ctx, source.Compiled, config)
	if err != nil {
		return nil, err
	}
	if memory != nil {
		memory.memory = module.Memory()
	}
	c := i.core(module)
	for _, name := range source.globals {
		c.globals = append(c.globals, module.ExportedGlobal(name).(api.MutableGlobal))
	}
	return module, nil
}

// core returns the state of a module, also while that is being instantiated.
func (i *instance) core(module api.Module) *core {
	for _, c := range i.cores {
		if c.module == module {
			return c
		}
	}
	c := &core{module: module, fuel: module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal), granted: quantum}
	i.cores = append(i.cores, c)
	return c
}

// config is the WASI environment of a guest. What differs between calls is read from the instance.
func (p *Plugin) config(i *instance, code *code, image *image) wazero.ModuleConfig {
	mounts := wazero.NewFSConfig()
	for _, mount := range p.spec.Mounts {
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(mount.FS(i.files), mount.GuestPath())
	}
	// Without "/", language runtimes report "bad file number" for a path in no mount. The longest match is the mount.
	mounts = mounts.(sysfs.FSConfig).WithSysFSMount(file.Root(p.spec.Mounts, i.noteOutside), "/")
	var start []string
	if image == nil && p.spec.Adapter == nil {
		start = []string{"_initialize"}
	}
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions(start...).
		WithArgs(p.spec.Name).
		WithFSConfig(mounts).
		WithStdout(&output{i, abi.LogInfo}).
		WithStderr(&output{i, abi.LogWarn}).
		WithRandSource(&entropy{i}).
		WithNanotime(p.engine.Nanotime, 1).
		WithSysWalltime().
		WithNanosleep(i.sleep)
	for _, setting := range p.environment(code) {
		config = config.WithEnv(setting.name, setting.value)
	}
	if clock := p.spec.Clock; clock != nil {
		config = config.WithWalltime(func() (int64, int32) {
			now := clock()
			return now.Unix(), int32(now.Nanosecond())
		}, 1)
	}
	return config
}

// run serves one call.
func (i *instance) run(ctx context.Context, c *call, payload [][]byte) error {
	i.call, c.instance = c, i
	c.ctx = ctx
	i.descriptorsChanged = false
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return err
	}
	i.memories.beginCall()
	defer func() {
		i.memories.endCall()
		c.refused = i.memories.refused
	}()
	i.files.Begin(ctx, c.Spend)
	c.meter = newMeter(c.limits.CPU) // without the steps of the start
	for _, core := range i.cores {
		core.grant(quantum)
	}
	defer func() {
		for _, core := range i.cores {
			c.meter.used += core.settle()
		}
	}()
	ctx = context.WithValue(ctx, instanceKey{}, i)
	if adapter := c.plugin.spec.Adapter; adapter != nil {
		var err error
		c.adapterResponse, err = adapter.Serve(ctx, &Guest{c}, c.request)
		if i.linked != nil {
			i.linked.EndCall()
		}
		return err
	}
	results, err := i.entry.Call(ctx, c.Give(payload...))
	if err != nil {
		return err
	}
	if len(results) != 1 {
		return &catalog.GuestError{Plugin: c.Plugin, Reason: "does not return a code from " + abi.Entry +
			": its author has to build it for ABI 1"}
	}
	if code := int32(results[0]); code != 0 {
		return &catalog.GuestError{Plugin: c.Plugin, Reason: fmt.Sprintf("returned the failure code %d instead of a "+
			"result: its log may have the reason", code)}
	}
	return nil
}

// dropCall drops the call that has ended, with all that it holds.
func (i *instance) dropCall() {
	i.call = nil
	for _, lost := range i.files.Unkept() {
		i.plugin.logger.Warn("a replaced file could not keep all its attributes", "path", lost.Path,
			"lost", strings.Join(lost.Attributes, ", "))
	}
	i.files.Begin(context.Background(), nil) // no guest code runs until the next call begins
}

// sleep is the guest's sleep; it ends early with the call.
func (i *instance) sleep(ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.call.ctx.Done():
		panic(i.call.ctx.Err())
	}
}

// entropy is the system's random source. Each read is charged to the call.
type entropy struct{ instance *instance }

func (e *entropy) Read(p []byte) (int, error) {
	p = p[:min(len(p), maxRandom)]
	if err := e.instance.call.spend(int64(len(p)) * broker.RandomSteps); err != nil {
		return 0, err
	}
	if e.instance.call.plugin.spec.Adapter != nil {
		e.instance.markRandomDrawn()
	}
	return rand.Read(p)
}

// drawsRandom is why an instance that draws random numbers during its start is not copied: it may have seeded a
// generator.
const drawsRandom = "it draws random numbers in its start"

// markRandomDrawn makes the instance not copyable, unless it already is.
func (i *instance) markRandomDrawn() {
	if i.notCopyable == "" {
		i.notCopyable = drawsRandom
	}
}

// maxRandom bounds the random bytes generated at once, which take a fraction of a millisecond.
const maxRandom = 64 << 10

// close frees the instance; reason is one of CloseReasons. Closing the modules runs no guest code.
func (i *instance) close(reason string) error {
	if i.started {
		i.plugin.engine.observer.InstanceClosed(i.plugin.spec.Name, reason)
	}
	i.files.End()
	var err error
	if i.linked != nil {
		err = i.linked.Close()
	}
	for _, core := range i.cores {
		err = errors.Join(err, core.module.Close(context.Background()))
	}
	i.memories.free()
	return err
}
