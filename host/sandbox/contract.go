package sandbox

import (
	"context"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Contract is how requests reach guests that do not speak ABI 1. The sandbox does everything else as for any guest: limits, queue,
// clean instances, mounts. Its methods run guest code with Guest.Invoke, on the goroutine of the call; one Contract serves any number
// of calls at once. The host functions that its guests import are among Spec.Modules.
//
// An error ends the call and the instance. One that Invoke returned is passed on, as it is or wrapped: the sandbox finds out what
// ended the guest. An *abi.Error, also one that a host function panicked with, reaches the caller.
type Contract interface {
	// Start makes a new instance ready for its first call. Other instances are copies of one that was started, unless it drew random
	// numbers or Guest.Unique was called.
	Start(ctx context.Context, guest *Guest) error
	// Serve answers one request. It checks everything that the guest says.
	Serve(ctx context.Context, guest *Guest, request *abi.Request) (*abi.Response, error)
}

// Guest is a guest during its start or one call, as a Contract and its host functions see it.
type Guest struct{ call *call }

// GuestOf returns the guest that called a host function, whose ctx this is.
func GuestOf(ctx context.Context) *Guest { return &Guest{callOf(ctx)} }

// Call is the host's side of the call.
func (g *Guest) Call() *broker.Call { return &g.call.Call }

// Limits are those in force for the call.
func (g *Guest) Limits() manifest.Limits { return g.call.limits }

// Passed is the error for passing the call's limit of that name, LimitMemory or LimitOutput: to be returned, or by a host function
// panicked with.
func (g *Guest) Passed(limit string) *LimitError {
	bytes := g.call.limits.Output
	if limit == LimitMemory {
		bytes = g.call.limits.Memory
	}
	return g.call.limitError(limit, bytesText(bytes), "ask for less at once, or raise limits."+limit)
}

// Hold charges n bytes that the host is about to hold for the call to the memory budget, until the call has ended. It waits for them. Its
// error is to be returned, or by a host function panicked with.
func (g *Guest) Hold(n int64) error { return g.call.hold(n) }

// HoldAnswer is Hold for an answer that is about to be copied and read as JSON.
func (g *Guest) HoldAnswer(data []byte) error {
	return g.call.hold(int64(len(data)) + readingBytes(data, nil))
}

// Exports reports whether the guest exports a function of that name.
func (g *Guest) Exports(name string) bool {
	return g.call.instance.module.ExportedFunction(name) != nil
}

// Invoke calls a function that the guest exports, with as many parameters as it takes. ctx is that of Start or Serve.
func (g *Guest) Invoke(ctx context.Context, name string, params ...uint64) ([]uint64, error) {
	return g.call.instance.module.ExportedFunction(name).Call(ctx, params...)
}

// Unique says that the instance being started must not be copied, and why: its start did something that copies would lack, or should
// not share. Each call then gets a fresh instance. It has no effect after the start.
func (g *Guest) Unique(reason string) { g.call.instance.unique = reason }

// Log passes on what the guest logs, within the call's log limit.
func (g *Guest) Log(level abi.LogLevel, text string) {
	if g.call.log.admit(int64(len(text))) {
		g.call.log.emit(level, text)
	}
}

// Updated notes that a resource has changed, as the core function "updated" does.
func (g *Guest) Updated(uri string) {
	if g.call.mayUpdate(len(uri)) {
		g.call.update(uri)
	}
}

// WantsProgress reports whether somebody is told of the call's progress.
func (g *Guest) WantsProgress() bool { return g.call.progress != nil }

// Report passes on a progress report, as the core function "progress" does: at most ten a second, of a message no more than 1 KiB.
func (g *Guest) Report(p abi.Progress) {
	if g.call.reports(p.Progress, p.Total) {
		p.Message = p.Message[:min(len(p.Message), maxProgressMessage)]
		g.call.progress(p)
	}
}
