package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	wasys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/broker/file"
	"github.com/hako-run/hako/host/internal/fuel"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Call runs one request in an instance of its own. What limits states of Time, Input, Output and Log holds instead of the plugin's.
// progress, if not nil, receives the guest's reports, one at a time, during the call.
//
// It waits for a free slot first. It fails with a *LimitError when a limit is passed, a *GuestError when the guest breaks its
// contract, ErrClosed when the plugin has been closed, and ctx's own error when the caller went away. What the guest itself
// calls a failure is a response with IsError or Error. The response is checked for form: blobs are resolved into Data, text is
// valid UTF-8.
func (p *Plugin) Call(ctx context.Context, request *abi.Request, limits manifest.Limits, progress func(abi.Progress)) (*abi.Response, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	defer p.calls.Done()
	if err := p.gate.enter(ctx, p.spec.Name); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	code, err := p.compiled(ctx)
	if err != nil {
		return nil, err
	}
	limits = limits.Or(p.spec.Limits)
	c := &call{plugin: p, limits: limits, progress: progress}
	c.Call = broker.Call{Plugin: p.spec.Name, Tool: request.Name}
	c.log = &logSink{logger: p.logger.With("tool", request.Name), left: limits.Log}
	payload, err := c.payload(*request)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	response, err := c.run(context.WithValue(timed, callKey{}, c), code, payload)
	if err != nil {
		return nil, c.explain(ctx, timed, err)
	}
	response.Replayed = c.Replayed
	return response, nil
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// call is the state of one call. Only the goroutine that runs it touches it.
type call struct {
	broker.Call
	plugin   *Plugin
	module   api.Module
	limits   manifest.Limits
	log      *logSink
	progress func(abi.Progress)

	lastProgress time.Time
	memory       *linearMemory
	response     []byte
	blobs        [][]byte
	output       int64
}

func (c *call) payload(request abi.Request) ([]byte, error) {
	request.DeadlineMS = c.limits.Time.Milliseconds()
	payload, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: encode the request: %w", c.Plugin, err)
	}
	if int64(len(request.Arguments)) > c.limits.Input {
		return nil, c.limitError(LimitInput, bytesText(c.limits.Input), "send less at once, or raise limits.input")
	}
	return payload, nil
}

// run instantiates, calls, and closes the instance whatever happens.
func (c *call) run(ctx context.Context, code *code, payload []byte) (response *abi.Response, err error) {
	defer func() { err = errors.Join(err, c.Close()) }()
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(c.allocate))
	instance, err := code.runtime.InstantiateModule(ctx, code.module, c.config(ctx))
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer instance.Close(context.WithoutCancel(ctx))
	entry := instance.ExportedFunction(abi.Entry)
	if entry == nil {
		return nil, &GuestError{Plugin: c.Plugin, Reason: "does not export " + abi.Entry}
	}
	c.Give(payload)
	results, err := entry.Call(ctx, uint64(len(payload)))
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || uint32(results[0]) != 0 {
		return nil, &GuestError{Plugin: c.Plugin, Reason: fmt.Sprintf("reported failure %d instead of answering", results)}
	}
	return decode(c.Plugin, c.response, c.blobs)
}

func (c *call) config(ctx context.Context) wazero.ModuleConfig {
	open := broker.State(&c.Call, openFiles{}, func() openFiles { return openFiles{file.NewHandles(c.limits.OpenFiles)} })
	open.Begin(ctx)
	mounts := wazero.NewFSConfig()
	for _, mount := range c.plugin.spec.Mounts {
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(mount.FS(open.Handles), mount.GuestPath())
	}
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions("_initialize").
		WithArgs(c.Plugin).
		WithFSConfig(mounts).
		WithStdout(c.log.lines(abi.LogInfo)).
		WithStderr(c.log.lines(abi.LogWarn)).
		WithRandSource(rand.Reader).
		WithSysNanotime().
		WithSysWalltime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) })
	if clock := c.plugin.spec.Clock; clock != nil {
		config = config.WithWalltime(func() (int64, int32) {
			now := clock()
			return now.Unix(), int32(now.Nanosecond())
		}, 1)
	}
	return config
}

// openFiles are those of one call.
type openFiles struct{ *file.Handles }

// Close closes what the guest left open.
func (o openFiles) Close() error {
	o.End()
	return nil
}

// sleep ends with the call.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		panic(ctx.Err())
	}
}

func (c *call) refuel() {
	c.module.ExportedGlobal(fuel.Export).(api.MutableGlobal).Set(quantum)
}

func (c *call) allocate(_, _ uint64) experimental.LinearMemory {
	c.memory = &linearMemory{limit: uint64(c.limits.Memory)}
	return c.memory
}

func (c *call) limitError(limit, value, remedy string) *LimitError {
	return &LimitError{Plugin: c.Plugin, Limit: limit, Value: value, Remedy: remedy}
}

// explain turns what ended a call into the error that the caller gets.
func (c *call) explain(caller, timed context.Context, err error) error {
	var limit *LimitError
	var guest *GuestError
	var exit *wasys.ExitError
	switch {
	case caller.Err() != nil:
		return fmt.Errorf("plugin %s: %w", c.Plugin, caller.Err())
	case errors.As(err, &limit):
		return limit
	case timed.Err() != nil:
		return c.limitError(LimitTime, c.limits.Time.String(), "ask for less at once, or raise limits.time")
	case c.memory != nil && c.memory.refused:
		return c.limitError(LimitMemory, bytesText(c.limits.Memory), "ask for less at once, or raise limits.memory")
	case errors.As(err, &guest):
		return guest
	case errors.As(err, &exit):
		return &GuestError{c.Plugin, fmt.Sprintf("exited with code %d instead of answering", exit.ExitCode()), err}
	}
	c.plugin.logger.Debug("the guest trapped", "tool", c.Tool, "err", err)
	return &GuestError{c.Plugin, "stopped: " + firstLine(err), err}
}
