package sandbox

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// Adapter passes requests to guests with an ABI other than ABI 1. Limits, queue, clean instances and mounts are the
// sandbox's, as for any guest. The methods run guest code with Guest.Invoke, on the goroutine of the call, and are
// called concurrently. The host functions that such guests import are among Spec.Modules.
//
// An error ends the call and the instance. An error of Invoke must be returned as it is or wrapped: the sandbox derives
// from it what ended the guest. The caller gets an *abi.Error, also if a host function panicked with it.
type Adapter interface {
	// Start prepares a new instance for its first call. Further instances are copies of a started one, unless it drew
	// random numbers or called Guest.DisableCopies.
	Start(ctx context.Context, guest *Guest) error
	// Serve runs one request. It must validate all output of the guest.
	Serve(ctx context.Context, guest *Guest, request *abi.Request) (*abi.Response, error)
}

// Guest gives an Adapter and its host functions access to a guest during its start or one call.
type Guest struct{ call *call }

// GuestOf returns the guest that called a host function; ctx is the function's.
func GuestOf(ctx context.Context) *Guest { return &Guest{callOf(ctx)} }

// Host is the host's side of the call.
func (g *Guest) Host() *broker.Call { return &g.call.Call }

// Limits returns the limits of the call.
func (g *Guest) Limits() manifest.Limits { return g.call.limits }

// MemoryLimitError returns the error for exceeding the memory limit. An Adapter returns it; a host function panics with
// it.
func (g *Guest) MemoryLimitError() *limit.Error {
	return g.sizeError(limit.Memory, g.call.limits.Memory)
}

// OutputLimitError is MemoryLimitError for the output limit.
func (g *Guest) OutputLimitError() *limit.Error {
	return g.sizeError(limit.Output, g.call.limits.Output)
}

func (g *Guest) sizeError(name string, bytes int64) *limit.Error {
	return g.call.limitError(name, limit.Bytes(bytes), "ask for less at once, or raise limits."+name)
}

// Reserve charges n bytes of host memory to the memory budget until the call has ended. It must be called before the
// memory is allocated and waits until the budget has room. An Adapter returns its error; a host function panics with
// it.
func (g *Guest) Reserve(n int64) error { return g.call.reserve(n) }

// ReserveResponse is Reserve for the copy of a response and for the memory that decoding it as JSON takes.
func (g *Guest) ReserveResponse(data []byte) error {
	return g.call.reserve(int64(len(data)) + readingBytes(data, nil))
}

// Exports reports whether the guest exports a function of that name; "interface#function" is one of an instance that a
// component exports.
func (g *Guest) Exports(name string) bool {
	if linked := g.call.instance.linked; linked != nil {
		return linked.Exports(name)
	}
	return g.call.instance.cores[0].module.ExportedFunction(name) != nil
}

// Invoke calls a function that the guest exports, with as many parameters as it takes. It must exist; see Exports.
// ctx is the context of Start or Serve.
func (g *Guest) Invoke(ctx context.Context, name string, params ...uint64) ([]uint64, error) {
	return g.call.instance.cores[0].module.ExportedFunction(name).Call(ctx, params...)
}

// Component returns the component that the guest is, or nil for a core module.
func (g *Guest) Component() *component.Component {
	if linked := g.call.instance.linked; linked != nil {
		return linked.Component()
	}
	return nil
}

// Call calls a function that the guest, a component, exports: "function", or "interface#function". Arguments and result
// are values as package component describes them. ctx is the context of Start or Serve. After an error the instance is
// unusable, and discarded when the call ends.
func (g *Guest) Call(ctx context.Context, export string, args []any) (any, error) {
	if g.call.instance.linked == nil {
		return nil, errors.New("the guest is not a component")
	}
	return g.call.instance.linked.Call(ctx, export, args)
}

// MarkRandomDrawn records that the guest draws random numbers. An instance that does so in its start is not copied: it
// may have seeded a generator.
func (g *Guest) MarkRandomDrawn() { g.call.instance.markRandomDrawn() }

// DisableCopies records that the instance being started must not be copied, and why: copies would lack, or share,
// something that its start did. Each call then gets a new instance. DisableCopies has no effect after the start.
func (g *Guest) DisableCopies(reason string) { g.call.instance.notCopyable = reason }

// Log logs a record of the guest, within the call's log limit.
func (g *Guest) Log(level abi.LogLevel, text string) {
	if g.call.log.admit(int64(len(text))) {
		g.call.log.emit(level, text)
	}
}

// Print writes to the guest's standard output (abi.LogInfo) or standard error (abi.LogWarn): each line becomes a log
// record. What exceeds the log limit is dropped.
func (g *Guest) Print(level abi.LogLevel, p []byte) {
	if g.call.log.admit(int64(len(p))) {
		g.call.log.write(level, p)
	}
}

// NotifyUpdated records that a resource has changed, as the core function "updated" does.
func (g *Guest) NotifyUpdated(uri string) {
	if g.call.admitUpdate(len(uri)) {
		g.call.addUpdate(uri)
	}
}

// WantsProgress reports whether the caller asked for progress reports.
func (g *Guest) WantsProgress() bool { return g.call.progress != nil }

// ReportProgress sends a progress report, as the core function "progress" does: at most ten a second, with at most 1
// KiB of message.
func (g *Guest) ReportProgress(p abi.Progress) {
	if g.call.admitProgress(p.Progress, p.Total) {
		g.call.sendProgress(p)
	}
}
