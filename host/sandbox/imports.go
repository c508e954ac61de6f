package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/pdk/abi"
)

var valueTypes = map[broker.Type]api.ValueType{
	broker.I32: api.ValueTypeI32,
	broker.I64: api.ValueTypeI64,
	broker.F64: api.ValueTypeF64,
}

// linkModule makes the functions of imports linkable in runtime.
func linkModule(ctx context.Context, runtime wazero.Runtime, imports broker.Module) error {
	builder := runtime.NewHostModuleBuilder(imports.Name)
	for _, function := range imports.Functions {
		params := make([]api.ValueType, len(function.Params))
		for i, t := range function.Params {
			params[i] = valueTypes[t]
		}
		var results []api.ValueType
		if function.Result != nil {
			results = []api.ValueType{valueTypes[*function.Result]}
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(hostFunction(function), params, results).Export(function.Name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

// hostFunction adapts function to wazero. It charges steps, releases the processor slot meanwhile, and stops a canceled
// call.
func hostFunction(function broker.Function) api.GoModuleFunc {
	return func(ctx context.Context, module api.Module, stack []uint64) {
		c := callOf(ctx)
		c.Memory = module.Memory()
		if !function.Late {
			c.Charge(fuel.CallSteps)
		}
		for i, t := range function.Params {
			if t == broker.I32 { // the runtime leaves the upper half undefined
				stack[i] = uint64(uint32(stack[i]))
			}
		}
		if !function.Late {
			c.turn.enterHost()
		}
		result := function.Do(ctx, &c.Call, stack[:len(function.Params)])
		if err := c.turn.leaveHost(ctx); err != nil {
			panic(err)
		}
		if function.Result != nil {
			stack[0] = result
		}
	}
}

var i32 = broker.I32

// CoreModule is hako:core/1 of docs/abi.md, which every guest may import.
var CoreModule = broker.Module{Name: abi.CoreModule, Functions: []broker.Function{
	{Name: "take", Params: []broker.Type{broker.I32},
		Do: func(_ context.Context, c *broker.Call, p []uint64) uint64 {
			at := uint64(uint32(p[0]))
			for _, part := range c.Take() {
				c.Put("take", at, part)
				at += uint64(len(part))
			}
			return 0
		}},
	{Name: "respond", Params: []broker.Type{broker.I32, broker.I32},
		Do: func(ctx context.Context, c *broker.Call, p []uint64) uint64 {
			callOf(ctx).respond(p[0], p[1])
			return 0
		}},
	{Name: "blob", Params: []broker.Type{broker.I32, broker.I32}, Result: &i32,
		Do: func(ctx context.Context, c *broker.Call, p []uint64) uint64 {
			return callOf(ctx).attach(p[0], p[1])
		}},
	{Name: "log", Params: []broker.Type{broker.I32, broker.I32, broker.I32},
		Do: func(ctx context.Context, c *broker.Call, p []uint64) uint64 {
			call := callOf(ctx)
			if n := int64(p[2]); call.log.admit(n) {
				call.log.emit(abi.LogLevel(int32(p[0])), string(c.Bytes("log", p[1], p[2])))
			}
			return 0
		}},
	{Name: "progress", Params: []broker.Type{broker.F64, broker.F64, broker.I32, broker.I32},
		Do: func(ctx context.Context, c *broker.Call, p []uint64) uint64 {
			callOf(ctx).reportProgress(api.DecodeF64(p[0]), api.DecodeF64(p[1]), p[2], p[3])
			return 0
		}},
	{Name: "updated", Params: []broker.Type{broker.I32, broker.I32},
		Do: func(ctx context.Context, c *broker.Call, p []uint64) uint64 {
			call := callOf(ctx)
			if call.admitUpdate(int(p[1])) {
				call.Charge(int64(len(call.updates)) * broker.EntrySteps)
				call.addUpdate(string(c.Bytes("updated", p[0], p[1])))
			}
			return 0
		}},
	{Name: "canceled", Result: &i32, Late: true, Do: func(ctx context.Context, _ *broker.Call, _ []uint64) uint64 {
		if ctx.Err() != nil {
			return 1
		}
		return 0
	}},
}}

// progressInterval is the minimum time between two progress reports. The first final one (progress = total) always
// passes.
const progressInterval = 100 * time.Millisecond

// maxProgressMessage bounds the text of a progress report, in bytes.
const maxProgressMessage = 1 << 10

func (c *call) reportProgress(progress, total float64, p, length uint64) {
	if c.admitProgress(progress, total) {
		c.Charge(broker.LineSteps)
		message := string(c.Bytes("progress", p, min(length, maxProgressMessage)))
		c.sendProgress(abi.Progress{Progress: progress, Total: total, Message: message})
	}
}

// sendProgress sends a report that admitProgress has admitted. Bytes of the message that are not UTF-8 are dropped, and
// so is a character that the bound cuts.
func (c *call) sendProgress(p abi.Progress) {
	p.Message = strings.ToValidUTF8(p.Message[:min(len(p.Message), maxProgressMessage)], "")
	c.progress(p)
}

// admitProgress reports whether a progress report may be sent now.
func (c *call) admitProgress(progress, total float64) bool {
	now, final := time.Now(), progress == total && !c.finalProgress
	if c.progress == nil || (now.Sub(c.lastProgress) < progressInterval && !final) {
		return false
	}
	c.lastProgress, c.finalProgress = now, c.finalProgress || final
	return true
}

func (c *call) respond(p, length uint64) {
	if c.response != nil {
		panic(fmt.Errorf("it responded twice"))
	}
	c.countOutput(length)
	c.Charge(int64(length) * fuel.TextSteps)
	c.mustReserve(int64(length))
	c.response = c.Bytes("respond", p, length)
}

// maxBlobs bounds how many blobs one response may have.
const maxBlobs = 256

func (c *call) attach(p, length uint64) uint64 {
	if len(c.blobs) == maxBlobs {
		panic(fmt.Errorf("it attached more than %d blobs", maxBlobs))
	}
	c.countOutput(length)
	c.mustReserve(int64(length))
	c.blobs = append(c.blobs, c.Bytes("blob", p, length))
	return uint64(len(c.blobs) - 1)
}

// countOutput charges n bytes of the response to the output limit.
func (c *call) countOutput(n uint64) {
	c.output += int64(n)
	if c.output > c.limits.Output {
		panic(c.limitError(limit.Output, limit.Bytes(c.limits.Output), "ask for less at once, or raise limits.output"))
	}
}
