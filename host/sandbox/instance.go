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

// instance is one instance of a plugin. It serves one call at a time.
type instance struct {
	plugin  *Plugin
	module  api.Module
	entry   api.Function
	fuel    api.MutableGlobal
	globals []api.MutableGlobal
	memory  *linearMemory
	files   *file.Handles
	// descriptors is how many descriptors it has from the start: standard ones, mounts and "/". spoiled says that the guest changed one.
	descriptors uint32
	spoiled     bool
	// unique says why no copies can be made of the instance after its start; empty if they can.
	unique string
	// started says that its start is over.
	started bool
	// call is the one being served, or the start.
	call *call
	// since is when its last call ended.
	since time.Time
	// remembers says that it remembers calls, which were the tenant's.
	remembers bool
	tenant    string
}

type instanceKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(instanceKey{}).(*instance).call }

// instantiate makes an instance that is as a guest is after its start: by starting it, or from the image of one that was. The
// call that waits for it pays the time, and its limits hold.
func (p *Plugin) instantiate(ctx context.Context, code *code, image *image, c *call) (_ *instance, err error) {
	begin, need := time.Now(), code.startMemory(image)
	if err := p.engine.budget.wait(ctx, p.spec.Name, need, c.patience); err != nil {
		return nil, err
	}
	memory := &linearMemory{limit: uint64(p.spec.Limits.Memory), budget: &p.engine.budget, paid: uint64(need)}
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
	allocate := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return i.memory })
	ctx = experimental.WithMemoryAllocator(context.WithValue(ctx, instanceKey{}, i), allocate)
	i.files.Begin(ctx, c.Spend)
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return nil, err
	}
	if i.module, err = code.runtime.InstantiateModule(ctx, code.module, p.config(i, image)); err != nil {
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
		err = image.impose(i)
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

// config is everything of WASI that a guest gets. What changes from call to call goes through the instance.
func (p *Plugin) config(i *instance, image *image) wazero.ModuleConfig {
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
	if clock := p.spec.Clock; clock != nil {
		config = config.WithWalltime(func() (int64, int32) {
			now := clock()
			return now.Unix(), int32(now.Nanosecond())
		}, 1)
	}
	return config
}

// run serves one call.
func (i *instance) run(ctx context.Context, c *call, payload []byte) error {
	i.call, c.instance = c, i
	c.ctx = ctx
	i.spoiled, i.memory.refused, i.memory.starved = false, false, false
	defer c.turn.release()
	if err := c.turn.acquire(ctx); err != nil {
		return err
	}
	i.memory.begin()
	defer i.memory.end()
	i.files.Begin(ctx, c.Spend)
	i.fuel.Set(uint64(c.meter.begin()))
	defer func() { c.meter.end(int64(i.fuel.Get())) }()
	ctx = context.WithValue(ctx, instanceKey{}, i)
	if contract := c.plugin.spec.Contract; contract != nil {
		var err error
		c.answer, err = contract.Serve(ctx, &Guest{c}, c.request)
		return err
	}
	c.Give(payload)
	results, err := i.entry.Call(ctx, uint64(len(payload)))
	if err != nil {
		return err
	}
	if len(results) != 1 {
		return &GuestError{Plugin: c.Plugin, Reason: "does not return a code from " + abi.Entry + ": its author has to build it for ABI 1"}
	}
	if code := int32(results[0]); code != 0 {
		return &GuestError{Plugin: c.Plugin, Reason: fmt.Sprintf("ended with the failure code %d instead of an answer: its log may say why", code)}
	}
	return nil
}

// sleep ends with the call.
func (i *instance) sleep(ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.call.ctx.Done():
		panic(i.call.ctx.Err())
	}
}

// entropy is the system's randomness. A read ends with the call, however long it is.
type entropy struct{ instance *instance }

func (e *entropy) Read(p []byte) (int, error) {
	p = p[:min(len(p), maxRandom)]
	if err := e.instance.call.spend(int64(len(p)) * broker.RandomSteps); err != nil {
		return 0, err
	}
	if e.instance.call.plugin.spec.Contract != nil {
		e.instance.draws()
	}
	return rand.Read(p)
}

// startDrew is why an instance that draws random numbers in its start is not copied: it may have seeded a generator.
const startDrew = "it draws random numbers in its start"

// draws notes that random numbers were drawn, unless there is another reason already.
func (i *instance) draws() {
	if i.unique == "" {
		i.unique = startDrew
	}
}

// maxRandom is how many random bytes are made at once: a fraction of a millisecond.
const maxRandom = 64 << 10

// close gives everything up, for one of CloseReasons. The module's own close does not run guest code.
func (i *instance) close(reason string) error {
	if i.started {
		i.plugin.engine.observer.InstanceClosed(i.plugin.spec.Name, reason)
	}
	i.files.End()
	err := i.module.Close(context.Background())
	i.memory.Free()
	return err
}
