package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	wasys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Call runs one request in an instance that is as it was right after its start, unless Spec.State says otherwise; then it is one of the
// same tenant's. What Limits states of Time, CPU, Input, Output and Log holds instead of the plugin's.
//
// It waits for a free slot first. It fails with a *LimitError when a limit is passed, a *GuestError when the guest breaks its
// contract, ErrClosed when the plugin has been closed, and ctx's own error when the caller went away. What the guest itself
// calls a failure is a response with IsError or Error. The response is checked for form: blobs are resolved into Data, text is
// valid UTF-8.
func (p *Plugin) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	defer p.calls.Done()
	ctx, span := trace.Start(ctx, "sandbox", trace.Internal)
	defer span.End()
	span.Text(trace.Plugin, p.spec.Name)
	session, err := p.sessions.enter(ctx, p.spec, invocation)
	if err != nil {
		return nil, err
	}
	defer p.sessions.leave(session)
	if err := p.queue(ctx); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	code, err := p.use(ctx)
	if err != nil {
		return nil, err
	}
	defer p.done(code)
	limits := invocation.Limits.Or(p.spec.Limits)
	c := p.newCall(invocation.Request.Name, limits)
	c.turn.caller = callerID{invocation.Tenant, invocation.User}
	c.Tenant, c.Ask, c.request = invocation.Tenant, invocation.Ask, invocation.Request
	c.progress, c.session = invocation.Progress, session
	c.log.ctx = ctx
	c.ctx = ctx
	defer c.drop()
	payload, err := c.payload(*c.request)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	defer c.passUpdates(invocation.Updated)
	if invocation.Steps != nil {
		defer func() { *invocation.Steps = c.meter.used }()
	}
	response, err := p.serve(timed, code, c, payload)
	if err != nil {
		return nil, c.explain(ctx, timed, err)
	}
	response.Replayed = c.Replayed
	if err := c.deliver(ctx, response); err != nil {
		return nil, c.explain(ctx, ctx, err)
	}
	return response, nil
}

// queue waits until the call may run.
func (p *Plugin) queue(ctx context.Context) error {
	begin := time.Now()
	_, span := trace.Start(ctx, "queue", trace.Internal)
	defer span.End()
	err := p.gate.enter(ctx, p.spec.Name)
	if err == nil {
		p.engine.observer.CallQueued(p.spec.Name, time.Since(begin))
	}
	return err
}

// serve runs the call in an instance and gives the instance back.
func (p *Plugin) serve(ctx context.Context, code *code, c *call, payload []byte) (*abi.Response, error) {
	_, span := trace.Start(ctx, "instance", trace.Internal)
	instance, err := p.acquire(ctx, code, c)
	span.End()
	if err != nil {
		return nil, err
	}
	err = errors.Join(instance.run(ctx, c, payload), c.Close())
	p.giveBack(code, instance, c, err == nil)
	if err != nil {
		return nil, err
	}
	if c.answer != nil {
		return c.answer, nil
	}
	if err := c.hold(readingBytes(c.response, c.blobs)); err != nil {
		return nil, err
	}
	return decode(c.Plugin, c.response, c.blobs)
}

// call is the state of one call. Only the goroutine that runs it touches it.
type call struct {
	broker.Call
	// ctx is the call's, for what WASI does without one.
	ctx      context.Context
	plugin   *Plugin
	instance *instance
	session  *session // nil: none
	limits   manifest.Limits
	meter    meter
	turn     turn
	log      logSink
	progress func(abi.Progress)
	// patience is how long the call waits for memory.
	patience time.Duration
	request  *abi.Request
	// answer is what a Contract made of the request.
	answer *abi.Response

	lastProgress  time.Time
	finalProgress bool
	// updates are the URIs of resources that have changed; dropsUpdates says that there are more.
	updates      []string
	dropsUpdates bool
	response     []byte
	blobs        [][]byte
	output       int64
	// held is what the budget was charged for what the host holds for the call, and owed what is not charged yet: see hold.
	held, owed int64
}

func (p *Plugin) newCall(tool string, limits manifest.Limits) *call {
	c := &call{
		Call:     broker.Call{Plugin: p.spec.Name, Tool: tool},
		ctx:      context.Background(),
		plugin:   p,
		limits:   limits,
		meter:    newMeter(limits.CPU),
		turn:     turn{scheduler: p.engine.scheduler, plugin: &p.share},
		patience: p.spec.Limits.QueueWait,
	}
	c.log = logSink{ctx: c.ctx, logger: p.logger, redact: p.engine.redact, call: c, left: limits.Log}
	c.Spend = c.spend
	return c
}

// requestCopies is how many copies of its arguments there are during a call: the caller's, the payload and one on the way to it.
const requestCopies = 3

func (c *call) payload(request abi.Request) ([]byte, error) {
	if int64(len(request.Arguments)) > c.limits.Input {
		return nil, c.limitError(LimitInput, bytesText(c.limits.Input), "send less at once, or raise limits.input")
	}
	if err := c.hold(requestCopies * int64(len(request.Arguments))); err != nil {
		return nil, err
	}
	if c.plugin.spec.Contract != nil {
		return nil, nil // it takes the request as it is
	}
	request.DeadlineMS = c.limits.Time.Milliseconds()
	payload, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: encode the request: %w", c.Plugin, err)
	}
	return payload, nil
}

func (c *call) limitError(limit, value, remedy string) *LimitError {
	return &LimitError{Plugin: c.Plugin, Limit: limit, Value: value, Remedy: remedy}
}

// explain turns what ended a call into the error that the caller gets.
func (c *call) explain(caller, timed context.Context, err error) error {
	var limit *LimitError
	var guest *GuestError
	var exit *wasys.ExitError
	var failed *abi.Error
	switch {
	case caller.Err() != nil:
		return fmt.Errorf("plugin %s: %w", c.Plugin, caller.Err())
	case errors.As(err, &limit):
		return limit
	case timed.Err() != nil:
		return c.limitError(LimitTime, c.limits.Time.String(), "ask for less at once, or raise limits.time")
	case c.instance != nil && c.instance.memory.starved:
		return c.plugin.engine.budget.exceeded(c.Plugin)
	case c.instance != nil && c.instance.memory.refused:
		return c.limitError(LimitMemory, bytesText(c.limits.Memory), "ask for less at once, or raise limits.memory")
	case errors.As(err, &guest):
		return guest
	case errors.As(err, &failed):
		return failed
	case errors.As(err, &exit):
		return &GuestError{c.Plugin, fmt.Sprintf("exited with code %d instead of answering", exit.ExitCode()), err}
	}
	c.plugin.logger.Debug("the guest trapped", "tool", c.Tool, "err", err)
	return &GuestError{c.Plugin, "stopped: " + firstLine(err), err}
}
