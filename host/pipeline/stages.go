package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

// served is a Call on its way through the stages, with what they have found and made.
type served struct {
	*Call
	record *openRecord

	// Of resolve: subject is what is called, and request what its backend gets, in the backend's names. shown is the tool
	// as the caller is offered it, nil for other methods.
	subject *subject
	request abi.Request
	shown   *catalog.Tool
	// arguments returns the arguments in the form that the backend gets, or why they are invalid. Nil means that the
	// method has none.
	arguments func() error

	// release gives back what takeQuota has taken. Nil means that it has taken nothing.
	release func(steps int64)
	// response is the backend's, nil before it has answered.
	response *abi.Response
}

// stage is a step of every call. Its error ends the call.
type stage func(context.Context, *served) error

// path returns the stages that every call passes, in their order. Nothing has had an effect before callBackend. Around all
// of them are the record, the span and the observer's view of the call: see serveCall.
func (p *Pipeline) path() []stage {
	return []stage{
		p.checkAudit,     // a call that cannot be recorded is not made
		p.resolve,        // its names are in the catalog, and the caller is offered them
		p.scanArguments,  // secrets in its arguments are masked, or refused
		p.checkArguments, // the arguments have the form that the tool declares
		p.show,           // observers see what is called
		p.permit,         // the policy, or a person, permits it
		p.awaitPermitted, // the frontend is told
		p.takeQuota,      // it is counted
		p.callBackend,    // the plugin or upstream server answers
		p.checkResult,    // the result has the form that the tool declares
		p.scanResult,     // secrets in it are masked, or it is withheld
	}
}

// pass takes a call through the stages. A panic of the host fails one call and not the process.
func (p *Pipeline) pass(ctx context.Context, c *served) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.options.Logger.ErrorContext(ctx, "a call panicked inside the host", "method", c.record.Method,
				"name", c.record.Name, "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = ErrInternal
		}
		if err == nil && stopped(ctx, c.response) {
			err = ErrStopped
		}
		if err != nil {
			c.response = nil
		}
	}()
	defer func() {
		if c.release != nil {
			c.release(c.record.Steps)
		}
	}()
	for _, stage := range p.stages {
		if err := stage(ctx, c); err != nil {
			if errors.Is(context.Cause(ctx), ErrStopped) {
				return ErrStopped
			}
			return p.scanFailure(err, c.record)
		}
	}
	return nil
}

// checkArguments brings the arguments into the form that the backend gets.
func (p *Pipeline) checkArguments(_ context.Context, c *served) error {
	if c.arguments == nil {
		return nil
	}
	return c.arguments()
}

// show lets records and observers have what is called, and the arguments that the operator wants recorded.
func (p *Pipeline) show(_ context.Context, c *served) error {
	c.record.whole, c.record.Input = c.request.Arguments, len(c.request.Arguments)
	c.record.Arguments = p.shownArguments(c.record.Name, c.request.Arguments)
	c.record.running.change(func(state *RunningState) {
		state.Name, state.Source = strings.Clone(c.record.Name), strings.Clone(c.record.Source)
		state.Arguments = c.record.Arguments // copies
	})
	return nil
}

// awaitPermitted calls Call.Permitted.
func (p *Pipeline) awaitPermitted(ctx context.Context, c *served) error {
	if c.Permitted == nil {
		return nil
	}
	return c.Permitted(ctx)
}
