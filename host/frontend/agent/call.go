package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/internal/toolschema"
	"github.com/hako-run/hako/pdk/abi"
)

// Causes of cancelling a call.
var (
	errInterrupted = errors.New("it was interrupted")
	errAnswered    = errors.New("it was answered")
	errEnding      = errors.New("hako is shutting down")
)

// call is a call in progress.
type call struct {
	session *session
	event   *event
	since   time.Time
	logger  *slog.Logger
	ctx     context.Context // of its life
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	started bool // guarded by mu: the tool was started and may have had an effect
}

// begin starts a call. It returns nil if the call must wait: for a free place, or because it still runs from an earlier
// time that the session was followed.
func (r *Runner) begin(s *session, p *pending) *call {
	key := s.id + "/" + p.event.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[key] != nil || len(r.open) >= maxOpen || r.retired() {
		return nil
	}
	c := &call{session: s, event: p.event, since: p.since, logger: s.logger.With("call", p.event.ID)}
	c.ctx, c.cancel = context.WithCancelCause(r.calling)
	r.open[key] = c
	r.calls.Go(func() {
		settled := r.run(c)
		c.cancel(nil)
		s.finished(c, settled)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, key)
	})
	return c
}

// unwanted reports whether the answer is no longer wanted.
func (c *call) unwanted() bool {
	cause := context.Cause(c.ctx)
	return errors.Is(cause, errInterrupted) || errors.Is(cause, errAnswered) || errors.Is(cause, errEnded)
}

// halt ends the call at shutdown, unless its tool runs.
func (c *call) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.cancel(errEnding)
	}
}

// start marks the tool as started, unless the call has ended.
func (c *call) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.started = true
	}
	return c.ctx.Err()
}

// run runs a call to its end. It reports whether the call is settled.
func (r *Runner) run(c *call) (settled bool) {
	wanted := r.resolve(c.event)
	if r.spec.Unknown == UnknownLeave && wanted.tool == nil && !r.options.Known(wanted.Name) {
		r.options.Observer.AgentCall(ResultLeft, time.Since(c.since))
		return true
	}
	e, err := r.journal.claim(c.ctx, c.session.id, c.event.ID, wanted.Name)
	switch {
	case errors.Is(err, errElsewhere):
		return false
	case err != nil && c.ctx.Err() == nil:
		c.logger.Error("a call could not be claimed: retrying", "err", err)
		return false
	case err != nil:
		return r.recordDropped(c)
	case e.state == StateSent, e.state == StateDropped && !c.session.wants(c.event.ID):
		return true
	}
	a, result := e.answer, ResultAnswered
	if e.state == StateDropped || e.state == StateRunning && !repeatable(wanted.tool) {
		c.logger.Warn("a call was interrupted and is not repeated", "tool", wanted.Name)
		a, result = failed(
			"hako stopped in the middle of this call and did not repeat it. It is unknown whether %s had an effect: "+
				"find out before you call it again.", wanted.Name), ResultLost
		r.options.Lost(r.caller(c.session.id, c.event.ID), wanted.Name)
	}
	if a == nil {
		a = r.execute(c, wanted)
	}
	if a == nil {
		return r.recordDropped(c)
	}
	if e.state != StateAnswered {
		r.move(c, StateAnswered, a)
	}
	return r.deliver(c, a, result)
}

// wanted is a call with the tool's original names. tool is nil if the caller has no such tool.
type wanted struct {
	llm.Call
	tool *catalog.Tool
}

// resolve finds the tool of a call.
func (r *Runner) resolve(e *event) wanted {
	tools := r.options.Tools(r.caller("", ""))
	w := wanted{Call: r.custom.Fit(offered(tools, r.options.Locale)).Call(e.ID, e.Name, e.Input)}
	for _, tool := range tools {
		if tool.Name == w.Name {
			w.tool = tool
		}
	}
	if w.Invalid != "" {
		w.Arguments = e.Input // the pipeline refuses it, and records that
	}
	return w
}

// offered returns the tools as definitions for an agent.
func offered(tools []*catalog.Tool, locale string) []llm.Tool {
	list := make([]llm.Tool, len(tools))
	for i, tool := range tools {
		list[i] = llm.Tool{Name: tool.Name, Description: tool.Spec.Description.In(locale),
			Schema: toolschema.Listed(tool.Spec.InputSchema)}
	}
	return list
}

// repeatable reports whether a tool is read-only or idempotent.
func repeatable(tool *catalog.Tool) bool {
	if tool == nil {
		return false // the tool no longer exists
	}
	hints := tool.Hints()
	return hints.ReadOnlyHint != nil && *hints.ReadOnlyHint || hints.IdempotentHint != nil && *hints.IdempotentHint
}

// execute runs the tool and returns the answer, or nil if the call ended before.
func (r *Runner) execute(c *call, w wanted) *answer {
	if c.event.refused != "" {
		return failed("The arguments of %s %s", w.Name, c.event.refused)
	}
	ctx, permitted, stop := callclock.StartPaused(c.ctx, r.spec.Timeout)
	defer stop()
	release := func() {}
	defer func() { release() }()
	result, err := r.options.Call(ctx, &pipeline.Call{
		Caller:    r.caller(c.session.id, c.event.ID),
		Request:   abi.Request{Method: abi.CallTool, Name: w.Name, Arguments: w.Arguments},
		MaxResult: int(r.spec.MaxResult),
		Permitted: func(ctx context.Context) (err error) {
			release, err = r.enter(ctx, c)
			permitted()
			return err
		},
	})
	switch {
	case c.unwanted():
		return nil
	case err == nil:
		return newAnswer(&w, result.Response, r.spec.MaxResult)
	case c.ctx.Err() != nil:
		return nil
	case ctx.Err() != nil:
		return failed("%s did not respond within %s. It is unknown whether it had an effect. Try something smaller.",
			w.Name, r.spec.Timeout)
	}
	return r.refusal(c, w, err)
}

// enter acquires a slot and records that the tool runs. release frees the slot.
func (r *Runner) enter(ctx context.Context, c *call) (release func(), err error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
	release = func() { <-r.slots }
	if err := c.start(); err != nil {
		return release, err
	}
	_, err = r.journal.move(context.WithoutCancel(ctx), c.session.id, c.event.ID, StateRunning, nil)
	return release, err
}

// refusal returns the answer to a call without a result.
func (r *Runner) refusal(c *call, w wanted, err error) *answer {
	var missing *pipeline.NotFoundError
	var denied *pipeline.NotAllowedError
	var invalid *pipeline.InvalidError
	switch {
	case errors.As(err, &missing) && len(missing.Near) > 0:
		return failed("There is no tool %q now. Did you mean %s?", c.event.Name,
			strings.Join(missing.Near, " or "))
	case errors.As(err, &missing):
		return failed("There is no tool %q now. Continue without it.", c.event.Name)
	case errors.As(err, &denied):
		return failed("%v. Do not try again, and say so in your answer.", denied)
	case errors.As(err, &invalid):
		return failed("%v", invalid)
	}
	c.logger.Error("a call failed", "tool", w.Name, "err", err)
	return failed("%s failed because of an internal error of hako, whose log has the reason.", w.Name)
}

// deliver sends an answer, with retries, until the API has it or it is no longer wanted. It reports whether the call is
// settled.
func (r *Runner) deliver(c *call, a *answer, result string) (settled bool) {
	for failures := 0; ; {
		err := r.client.send(c.ctx, c.session.id, c.event.ID, a)
		switch {
		case err == nil:
			r.sent(c, result)
			return true
		case errors.Is(context.Cause(c.ctx), errAnswered):
			r.sent(c, result) // the session's event arrived before the response
			return true
		case c.ctx.Err() != nil:
			return r.recordDropped(c)
		case errors.Is(err, Auth):
			r.fail(err)
			return false
		case errors.Is(err, Refused) && r.delivered(c):
			r.sent(c, result) // an earlier request succeeded, but its response was lost
			return true
		case errors.Is(err, Refused) && result == ResultAnswered:
			c.logger.Warn("the API rejects a result: the agent gets an error result instead", "err", err)
			a, result = failed(
				"The result cannot be delivered: the API rejects it. The call was made and may have had an effect."),
				ResultUndelivered
			continue
		case errors.Is(err, Refused), errors.Is(err, Gone):
			c.logger.Error("the API rejects the result of a call", "err", err)
			r.move(c, StateDropped, nil)
			r.options.Observer.AgentCall(ResultUndelivered, time.Since(c.since))
			c.session.recheck() // the session may have ended
			return true
		}
		failures++
		c.logger.Warn("a result could not be sent: retrying", "err", err)
		_ = retry.Wait(c.ctx, r.backoff(failures)) // whether the call is over, the next request sees
	}
}

// delivered reports whether the session shows a result for the call.
func (r *Runner) delivered(c *call) (found bool) {
	since := time.Time{}
	if c.event.ProcessedAt != nil {
		since = *c.event.ProcessedAt
	}
	take := func(e *event) { found = found || e.Type == typeResult && e.Call == c.event.ID }
	// without a list the answer counts as not delivered
	_ = r.client.list(c.ctx, c.session.id, since, take, func(error) {})
	return found
}

// sent records that the agent has the answer.
func (r *Runner) sent(c *call, result string) {
	r.move(c, StateSent, nil)
	r.options.Observer.AgentCall(result, time.Since(c.since))
}

// recordDropped records that a call was cancelled. It reports whether that settles the call.
func (r *Runner) recordDropped(c *call) (settled bool) {
	if !c.unwanted() {
		if err := r.journal.releaseCall(context.WithoutCancel(c.ctx), c.session.id, c.event.ID); err != nil {
			c.logger.Error("a call could not be released to other processes", "err", err)
		}
		return false // the next process finds it in the journal
	}
	if !r.move(c, StateDropped, nil) {
		return true
	}
	c.logger.Info("a call ended without a result", "cause", context.Cause(c.ctx))
	r.options.Observer.AgentCall(ResultDropped, time.Since(c.since))
	return true
}

// move records the state of a call, even if its context has ended. It reports false if the answer was already sent, or
// another process has the call.
func (r *Runner) move(c *call, state State, a *answer) bool {
	changed, err := r.journal.move(context.WithoutCancel(c.ctx), c.session.id, c.event.ID, state, a)
	if err != nil {
		c.logger.Error("a call could not be written to the journal", "state", state, "err", err)
	}
	return changed || err != nil
}
