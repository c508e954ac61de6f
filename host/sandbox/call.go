package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	wasys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/pdk/abi"
)

var _ catalog.Backend = (*Plugin)(nil)

// Call runs one request. The instance is in its state right after start, or, if Spec.State is not StateCall, in the
// state that earlier calls of the same session or tenant left. Non-zero Time, CPU, Input, Output and Log of
// invocation.Limits override the plugin's limits.
//
// Call waits for a free slot first. It returns a *limit.Error if a limit is exceeded, a *catalog.GuestError if the guest
// breaks its contract, catalog.ErrClosed if the plugin has been closed, and ctx's error if ctx ends. A failure that the
// guest reports itself is a response with IsError or Error, also if the guest traps or exits after it. Responses are
// validated: blobs are resolved into Data, text is valid UTF-8.
func (p *Plugin) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	if err := p.beginCall(); err != nil {
		return nil, err
	}
	defer p.calls.Done()
	ctx, span := trace.Start(ctx, "sandbox", trace.Internal)
	defer span.End()
	span.Text(trace.Plugin, p.spec.Name)
	session, err := p.sessions.acquire(ctx, p.spec, invocation)
	if err != nil {
		return nil, err
	}
	defer p.sessions.release(session)
	if err := p.acquireSlot(ctx); err != nil {
		return nil, err
	}
	defer p.gate.Release()
	code, err := p.acquireCode(ctx)
	if err != nil {
		return nil, err
	}
	defer p.releaseCode(code)
	limits := invocation.Limits.Or(p.spec.Limits)
	c := p.newCall(invocation.Request.Name, limits)
	c.turn.caller = callerID{invocation.Tenant, invocation.User}
	c.Tenant, c.Ask, c.Tools, c.request = invocation.Tenant, invocation.Ask, invocation.Tools, invocation.Request
	c.progress, c.session = invocation.Progress, session
	c.log.ctx = ctx
	c.ctx = ctx
	defer c.releaseReserved()
	defer c.log.end()
	payload, err := c.encodeRequest(*c.request)
	if err != nil {
		return nil, err
	}
	timed, _, stop := callclock.Start(ctx, limits.Time)
	defer stop()
	defer c.sendUpdates(invocation.Updated)
	if invocation.Steps != nil {
		defer func() { *invocation.Steps = c.meter.used }()
	}
	response, err := p.serveCall(timed, code, c, payload)
	c.logOutside(err != nil || response.IsError || response.Error != nil)
	if err != nil {
		err = c.callError(ctx, timed, err)
		if response = c.reportedFailure(err); response == nil {
			return nil, err
		}
		response.Stack = catalog.Stack(err)
	}
	response.Replayed = c.Replayed
	delivery := ctx
	if invocation.Delivery != nil {
		delivery = invocation.Delivery
	}
	if err := c.chargeDelivery(delivery, response); err != nil {
		return nil, c.callError(delivery, delivery, err)
	}
	return response, nil
}

// acquireSlot waits for one of the plugin's slots.
func (p *Plugin) acquireSlot(ctx context.Context) error {
	begin := time.Now()
	_, span := trace.Start(ctx, "queue", trace.Internal)
	defer span.End()
	err := p.gate.Acquire(ctx, p.spec.Name)
	if err == nil {
		p.engine.observer.CallQueued(p.spec.Name, time.Since(begin))
	}
	return err
}

func (p *Plugin) serveCall(ctx context.Context, code *code, c *call, payload [][]byte) (*abi.Response, error) {
	_, span := trace.Start(ctx, "instance", trace.Internal)
	instance, err := p.acquireInstance(ctx, code, c)
	span.End()
	if err != nil {
		return nil, err
	}
	err = errors.Join(instance.run(ctx, c, payload), c.Close())
	p.releaseInstance(code, instance, c, err == nil && instance.usable())
	if err != nil {
		return nil, err
	}
	if c.adapterResponse != nil {
		return c.adapterResponse, nil
	}
	if err := c.reserve(readingBytes(c.response, c.blobs)); err != nil {
		return nil, err
	}
	return c.decodeResponse()
}

// decodeResponse decodes the response. It can be called once: the decoder overwrites the guest's response.
func (c *call) decodeResponse() (*abi.Response, error) {
	data := c.response
	c.response, c.source = nil, int64(len(data))
	return decode(c.Plugin, data, c.blobs)
}

// reportedFailure returns the response of a guest that reported a failure and then broke off, or nil: runtimes that
// cannot unwind report a panic in this way.
func (c *call) reportedFailure(err error) *abi.Response {
	var guest *catalog.GuestError
	if !errors.As(err, &guest) || c.response == nil || c.reserve(readingBytes(c.response, c.blobs)) != nil {
		return nil
	}
	response, err := c.decodeResponse()
	if err != nil || !response.IsError && response.Error == nil {
		return nil
	}
	return response
}

// call is the state of one call. Only the goroutine that runs it touches it.
type call struct {
	broker.Call
	// ctx is the call's context, for WASI functions that get none.
	ctx      context.Context
	plugin   *Plugin
	instance *instance
	session  *session // nil if the call has none
	limits   manifest.Limits
	meter    meter
	turn     turn
	log      logSink
	progress func(abi.Progress)
	// refused is the instance's, once that has run: other calls have the instance then.
	refused refusedGrowth
	// memoryWait bounds the wait for memory.
	memoryWait time.Duration
	request    *abi.Request
	// adapterResponse is the response of Adapter.Serve.
	adapterResponse *abi.Response

	// outside are paths that the guest used and that lie under no mount: see logOutside.
	outside       []string
	lastProgress  time.Time
	finalProgress bool
	// updates are the URIs of changed resources. dropsUpdates is true once one had to be dropped.
	updates      []string
	dropsUpdates bool
	response     []byte
	// source is the size of the response, once that is decoded.
	source int64
	blobs  [][]byte
	output int64
	// reserved counts the bytes charged to the budget for host memory of this call, unreserved those not charged yet
	// (see reserve); it is negative if more are charged than are in use. values counts those of reserveValues.
	reserved, unreserved, values int64
}

func (p *Plugin) newCall(tool string, limits manifest.Limits) *call {
	c := &call{
		Call:       broker.Call{Plugin: p.spec.Name, Tool: tool},
		ctx:        context.Background(),
		plugin:     p,
		limits:     limits,
		meter:      newMeter(limits.CPU),
		turn:       turn{scheduler: p.engine.scheduler, plugin: &p.share},
		memoryWait: p.spec.Limits.QueueWait,
	}
	c.log = logSink{ctx: c.ctx, logger: p.logger, redact: p.engine.redact, call: c, left: limits.Log}
	c.Spend = c.spend
	return c
}

// requestCopies counts the copies of the arguments during a call: the caller's, and the texts in it that have
// been scanned and validated.
const requestCopies = 3

func (c *call) encodeRequest(request abi.Request) ([][]byte, error) {
	if int64(len(request.Arguments)) > c.limits.Input {
		return nil, c.limitError(limit.Input, limit.Bytes(c.limits.Input), "send less at once, or raise limits.input")
	}
	if err := c.reserve(requestCopies * int64(len(request.Arguments))); err != nil {
		return nil, err
	}
	if c.plugin.spec.Adapter != nil {
		return nil, nil // Adapter.Serve gets the request itself
	}
	request.DeadlineMS = c.limits.Time.Milliseconds()
	payload, err := encode(request)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: encode the request: %w", c.Plugin, err)
	}
	return payload, nil
}

// encode encodes a request as JSON, in parts: its arguments, which must be valid, are not copied.
func encode(request abi.Request) ([][]byte, error) {
	arguments := request.Arguments
	request.Arguments = nil
	head, err := json.Marshal(request)
	if err != nil || len(arguments) == 0 {
		return [][]byte{head}, err
	}
	return [][]byte{append(head[:len(head)-1], `,"arguments":`...), arguments, []byte("}")}, nil
}

func (c *call) limitError(name, value, remedy string) *limit.Error {
	return &limit.Error{Plugin: c.Plugin, Limit: name, Value: value, Remedy: remedy}
}

// callError converts the reason a call ended into the error that the caller gets.
func (c *call) callError(caller, timed context.Context, err error) error {
	failure := c.failure(caller, timed, err)
	if caller.Err() != nil {
		return failure
	}
	return c.withStack(failure, err)
}

// failure is callError without the stack.
func (c *call) failure(caller, timed context.Context, err error) error {
	var exceeded *limit.Error
	var guest *catalog.GuestError
	var exit *wasys.ExitError
	var failed *abi.Error
	switch {
	case caller.Err() != nil:
		return fmt.Errorf("plugin %s: %w", c.Plugin, caller.Err())
	case errors.As(err, &exceeded):
		return exceeded
	case timed.Err() != nil:
		return c.limitError(limit.Time, c.limits.Time.String(), "ask for less at once, or raise limits.time")
	case c.refused.budget:
		return c.plugin.engine.budget.exceededError(c.Plugin)
	case c.refused.limit:
		return c.limitError(limit.Memory, limit.Bytes(c.limits.Memory), "ask for less at once, or raise limits.memory")
	case errors.As(err, &guest):
		return guest
	case errors.As(err, &failed):
		return failed
	case errors.As(err, &exit):
		return c.guestError(fmt.Sprintf("exited with code %d instead of returning a result", exit.ExitCode()), err)
	}
	return c.guestError("stopped: "+cmp.Or(c.log.report().Message, firstLine(err)), err)
}

func (c *call) guestError(reason string, err error) error {
	return &catalog.GuestError{Plugin: c.Plugin, Reason: reason, Err: err}
}
