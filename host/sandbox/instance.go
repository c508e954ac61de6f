package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/broker/file"
	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/pdk/abi"
)

// instance is a plugin's module instance. It serves one call at a time.
type instance struct {
	plugin  *Plugin
	module  api.Module
	entry   api.Function
	fuel    api.MutableGlobal
	globals []api.MutableGlobal
	memory  *linearMemory
	files   *file.Handles
	// descriptors is the number of descriptors after start: standard streams, mounts and "/". descriptorsChanged is
	// true once the guest has changed one of them.
	descriptors        uint32
	descriptorsChanged bool
	// notCopyable says why the instance must not be copied after its start; empty means that it may.
	notCopyable string
	// started is true once the start has ended.
	started bool
	// call is the running call, or the call that waits for the start.
	call *call
	// since is when the last call ended.
	since time.Time
	// hasState is true if the instance holds state of earlier calls, which belong to tenant.
	hasState bool
	tenant   string
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
	memory := &linearMemory{limit: uint64(p.spec.Limits.Memory), budget: &p.engine.budget, reserved: uint64(need)}
	i := &instance{plugin: p, memory: memory, files: file.NewHandles(p.spec.Limits.OpenFiles), call: c,
		descriptors: uint32(3 + len(p.spec.Mounts) + 1)}
	c.instance = i
	defer func() {
		if err != nil {
			i.memory.Free()
		}
	}()
	if i.memory.region, err = reserve(i.memory.limit); err != nil {
		return nil, err
	}
	if image == nil {
		if i.memory.initial, err = code.data.load(p); err != nil {
			return nil, err
		}
	}
	allocate := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return i.memory })
	ctx = experimental.WithMemoryAllocator(context.WithValue(ctx, instanceKey{}, i), allocate)
	i.files.Begin(ctx, c.Spend)
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return nil, err
	}
	if i.module, err = code.runtime.InstantiateModule(ctx, code.module, p.config(i, code, image)); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if i.entry = i.module.ExportedFunction(abi.Entry); i.entry == nil && p.spec.Contract == nil {
		return nil, &GuestError{Plugin: p.spec.Name, Reason: "does not export " + abi.Entry}
	}
	i.fuel = i.module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal)
	for _, name := range code.globals {
		i.globals = append(i.globals, i.module.ExportedGlobal(name).(api.MutableGlobal))
	}
	if image != nil {
		err = image.initialize(i)
	} else if p.spec.Contract != nil {
		err = p.spec.Contract.Start(ctx, &Guest{c})
	}
	if err != nil {
		return nil, errors.Join(err, i.close(CloseFailed))
	}
	i.started = true
	how := FromStart
	if image != nil {
		how = FromImage
	}
	p.engine.observer.InstanceMade(p.spec.Name, how, time.Since(begin))
	return i, nil
}

// config is the WASI environment of a guest. What differs between calls is read from the instance.
func (p *Plugin) config(i *instance, code *code, image *image) wazero.ModuleConfig {
	mounts := wazero.NewFSConfig()
	for _, mount := range p.spec.Mounts {
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(mount.FS(i.files), mount.GuestPath())
	}
	mounts = mounts.(sysfs.FSConfig).WithSysFSMount(file.Root(p.spec.Mounts), "/")
	var start []string
	if image == nil && p.spec.Contract == nil {
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
		WithNanotime(p.engine.nanotime, 1).
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
	i.descriptorsChanged, i.memory.limitExceeded, i.memory.budgetExhausted = false, false, false
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return err
	}
	i.memory.beginCall()
	defer i.memory.endCall()
	i.files.Begin(ctx, c.Spend)
	i.fuel.Set(uint64(c.meter.reset()))
	defer func() { c.meter.finish(int64(i.fuel.Get())) }()
	ctx = context.WithValue(ctx, instanceKey{}, i)
	if contract := c.plugin.spec.Contract; contract != nil {
		var err error
		c.contractResponse, err = contract.Serve(ctx, &Guest{c}, c.request)
		return err
	}
	results, err := i.entry.Call(ctx, c.Give(payload...))
	if err != nil {
		return err
	}
	if len(results) != 1 {
		return &GuestError{Plugin: c.Plugin, Reason: "does not return a code from " + abi.Entry +
			": its author has to build it for ABI 1"}
	}
	if code := int32(results[0]); code != 0 {
		return &GuestError{Plugin: c.Plugin, Reason: fmt.Sprintf("ended with the failure code %d instead of an "+
			"answer: its log may say why", code)}
	}
	return nil
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
	if e.instance.call.plugin.spec.Contract != nil {
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

// close frees the instance; reason is one of CloseReasons. Closing the module runs no guest code.
func (i *instance) close(reason string) error {
	if i.started {
		i.plugin.engine.observer.InstanceClosed(i.plugin.spec.Name, reason)
	}
	i.files.End()
	err := i.module.Close(context.Background())
	i.memory.Free()
	return err
}
