package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// ErrStopped is the error of a call that an operator stopped. Its text is for the caller.
var ErrStopped = errors.New("an operator of this server stopped the call: do not repeat it unless you are asked to")

// Running is a call that has started. Observers may keep it. Its methods are safe for concurrent use, also after the
// call has ended.
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

	cancel context.CancelCauseFunc
	// delivery is the context of the caller, which ends after the call. Nil means that of the call: a call of another
	// call's tool is delivered when it ends.
	delivery context.Context

	mu    sync.Mutex
	state RunningState
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

// begin returns a Running for the call of the record and a context that Stop cancels. The caller cancels it in any
// case.
func begin(ctx context.Context, record *Record) (context.Context, *Running) {
	r := &Running{ID: record.ID, Parent: record.Parent, Caller: record.Caller, Method: record.Method,
		Started: record.Started,
		TraceID: record.TraceID}
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
func (r *Running) Stop() { r.cancel(ErrStopped) }

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
		r.change(func(s *RunningState) { s.Progress = &p })
		if next != nil {
			next(p)
		}
	}
}

// stopped returns the response and the error of a call, or ErrStopped if the call failed because Stop canceled it.
func stopped(ctx context.Context, response *abi.Response, err error) (*abi.Response, error) {
	if errors.Is(context.Cause(ctx), ErrStopped) && (err != nil || response.IsError) {
		return nil, ErrStopped
	}
	return response, err
}
