package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// ErrStopped is the error of a call that an operator stopped. Its text is for the caller.
var ErrStopped = errors.New("an operator of this server stopped the call: do not repeat it unless you are asked to")

// Running is a call that has started. Observers may keep it: like a Record it shares no memory with the request, and it
// drops the contexts of the call when the call ends. Its methods are safe for concurrent use, also after the call has
// ended.
type Running struct {
	// ID is the ID of the Record and of the audit record. Parent is the ID of the call whose tool made this one, or
	// empty.
	ID, Parent string
	Caller     Caller
	Method     string
	Started    time.Time
	TraceID    string
	// Recording has the steps and the guest's log lines.
	Recording *trace.Recording

	// delivery is the context of the caller, which ends after the call. Nil means that of the call: a call of another
	// call's tool is delivered when it ends. Only the call itself uses it.
	delivery context.Context

	// mu guards the fields below.
	mu     sync.Mutex
	state  RunningState
	cancel context.CancelCauseFunc // nil after the end
}

// RunningState is the part of a Running that changes.
type RunningState struct {
	// Name and Source are from the catalog, empty until the name is resolved.
	Name, Source string
	// Arguments are those that the operator wants recorded (Governance.AuditFields).
	Arguments map[string]json.RawMessage
	// Question is the ID of the approval question that the call waits for; empty if it waits for none.
	Question string
	// Progress is the latest report of the tool, nil if there is none. Nobody changes it.
	Progress *abi.Progress
}

// begin returns a Running for the call of the record and a context that Stop cancels. The caller calls end in any case.
// From then on the record's Caller is a copy for observers too.
func begin(ctx context.Context, record *openRecord) (context.Context, *Running) {
	record.Caller = record.Caller.detached()
	r := &Running{ID: strings.Clone(record.ID), Parent: strings.Clone(record.Parent), Caller: record.Caller,
		Method: strings.Clone(record.Method), Started: record.Started, TraceID: strings.Clone(record.TraceID)}
	if record.Parent == "" {
		r.delivery = ctx
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	ctx, r.Recording = trace.Record(ctx, record.ID)
	return ctx, r
}

// State returns the current state.
func (r *Running) State() RunningState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Stop cancels the call, whose caller gets ErrStopped. It does not wait for the end, and does nothing for a call that
// has ended.
func (r *Running) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel(ErrStopped)
	}
}

// end cancels the context of the call and drops it, with all that it holds.
func (r *Running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(nil)
	r.cancel, r.delivery = nil, nil
}

// change changes the state. It does nothing if r is nil because nobody observes calls.
func (r *Running) change(do func(*RunningState)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	do(&r.state)
}

// withProgress returns a function that keeps reports for observers and passes them to next, which may be nil.
func (r *Running) withProgress(next func(abi.Progress)) func(abi.Progress) {
	if r == nil {
		return next
	}
	return func(p abi.Progress) {
		kept := p
		kept.Message = strings.Clone(p.Message)
		r.change(func(s *RunningState) { s.Progress = &kept })
		if next != nil {
			next(p)
		}
	}
}

// stopped reports whether Stop canceled the call and its response only says so.
func stopped(ctx context.Context, response *abi.Response) bool {
	return errors.Is(context.Cause(ctx), ErrStopped) && response.IsError
}
