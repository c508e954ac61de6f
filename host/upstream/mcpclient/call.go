package mcpclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/pdk/abi"
)

// reconnectTime bounds the wait of a call for a server that is being reconnected.
const reconnectTime = 5 * time.Second

var _ catalog.Backend = (*server)(nil)

// Call forwards one request to the server. If the server has lost the session, it has not served the call, which is
// then repeated once in a new session. No other call is repeated.
func (s *server) Call(parent context.Context, inv *catalog.Invocation) (_ *abi.Response, err error) {
	parent, span := s.begin(parent, inv)
	defer func() {
		if err != nil {
			span.Fail("failed")
		}
		span.End()
	}()
	bounds := s.bounds.Load()
	limits := inv.Limits.Or(bounds.limits)
	if int64(len(inv.Request.Arguments)) > limits.Input {
		return nil, newLimitError(s.spec.Name, limit.Input, limit.Bytes(limits.Input))
	}
	if err := bounds.gate.Acquire(parent, s.spec.Name); err != nil {
		return nil, err
	}
	defer bounds.gate.Release()
	defer s.use()()
	ctx, clock, stop := callclock.Start(parent, limits.Time)
	defer stop()
	response, err := s.attempt(ctx, clock, inv)
	if errors.Is(err, errSessionLost) {
		response, err = s.attempt(ctx, clock, inv)
	}
	switch {
	case err != nil && parent.Err() == nil && clock.Expired():
		late := newLimitError(s.spec.Name, limit.Time, limits.Time.String())
		late.odd = s.takeOdd()
		return nil, late
	case err != nil:
		return nil, s.callError(parent, inv.Request.Method, err)
	case int64(size(response)) > limits.Output:
		return nil, newLimitError(s.spec.Name, limit.Output, limit.Bytes(limits.Output))
	}
	return response, nil
}

// attempt makes the call in the current session, or in the next one if the server is being reconnected.
func (s *server) attempt(ctx context.Context, clock *callclock.Clock, inv *catalog.Invocation) (*abi.Response, error) {
	x, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, token))
	defer cancel(nil)
	defer context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })()
	o, end := x.begin(ctx, inv, clock, token)
	response, err := s.do(ctx, x, o)
	end(ctx.Err() != nil)
	if err == nil && inv.Request.Method == abi.CallTool {
		o.explainUnanswered(s.spec.Name, response)
	}
	if err != nil && (ctx.Err() == nil || errors.Is(err, errSessionLost)) {
		s.suspect(x, err)
	}
	if ended := context.Cause(x.ctx); errors.Is(err, context.Canceled) && ended != nil {
		err = ended
	}
	return response, err
}

// takeOdd returns the beginning of a response of the server that belonged to no request, or empty.
func (s *server) takeOdd() string {
	s.mu.Lock()
	x := s.session
	s.mu.Unlock()
	if x == nil {
		return ""
	}
	return x.requests.takeOdd()
}

// suspect handles a session in which a call has failed. A session that is over is not used again. Otherwise the server
// is asked for its lists, which shows whether the session is over.
func (s *server) suspect(x *session, err error) {
	var bad *answerError
	var unsent *unreachable
	var refused *statusError
	switch {
	case errors.Is(err, errSessionLost):
		s.lost(x)
		x.end(cause.WithoutURL(err))
	case errors.As(err, &refused):
		x.change()
	case answered(err) != nil, errors.As(err, &bad), errors.As(err, &unsent):
	case x.program != nil, errors.Is(err, mcp.ErrConnectionClosed):
		s.lost(x)
		x.end(cause.WithoutURL(err))
	default:
		x.change()
	}
}

func (s *server) do(ctx context.Context, x *session, o *ongoing) (*abi.Response, error) {
	request, t := o.invocation.Request, translator{&s.spec}
	meta := func() mcp.Meta { return s.without(traceMeta(ctx), x, o.invocation) }
	var call func(answers mcp.InputResponseMap, state string) (round, error)
	switch request.Method {
	case abi.CallTool:
		name, ok := s.currentOffer().tools[request.Name]
		if !ok {
			return nil, s.vanished("tool", request.Name)
		}
		call = func(answers mcp.InputResponseMap, state string) (round, error) {
			result, err := s.callTool(ctx, x, o.invocation, &mcp.CallToolParams{
				Meta: meta(), Name: name, Arguments: request.Arguments,
				InputResponses: answers, RequestState: state,
			})
			if err != nil {
				return round{}, err
			}
			return round{result.InputRequests, result.RequestState, result.NeedsInput(),
				func() (*abi.Response, error) { return t.tool(result) }}, nil
		}
	case abi.GetPrompt:
		var arguments map[string]string
		if len(request.Arguments) > 0 {
			if err := json.Unmarshal(request.Arguments, &arguments); err != nil {
				return nil, err
			}
		}
		name, ok := s.currentOffer().prompts[request.Name]
		if !ok {
			return nil, s.vanished("prompt", request.Name)
		}
		call = func(answers mcp.InputResponseMap, state string) (round, error) {
			result, err := x.sdk.GetPrompt(ctx, &mcp.GetPromptParams{
				Meta: meta(), Name: name, Arguments: arguments, InputResponses: answers,
				RequestState: state,
			})
			if err != nil {
				return round{}, err
			}
			return round{result.InputRequests, result.RequestState, result.NeedsInput(),
				func() (*abi.Response, error) { return t.prompt(result) }}, nil
		}
	case abi.ReadResource:
		uri, _ := s.spec.inside(request.URI) // the catalog has asked the server that owns it
		call = func(answers mcp.InputResponseMap, state string) (round, error) {
			result, err := x.sdk.ReadResource(ctx, &mcp.ReadResourceParams{
				Meta: meta(), URI: uri, InputResponses: answers,
				RequestState: state,
			})
			if err != nil {
				return round{}, err
			}
			return round{result.InputRequests, result.RequestState, result.NeedsInput(),
				func() (*abi.Response, error) { return t.resource(result) }}, nil
		}
	default:
		return s.complete(ctx, x, request, t)
	}
	return s.rounds(ctx, o, call)
}

// invalid marks err as the error of a response that does not conform to MCP.
func invalid(response *abi.Response, err error) (*abi.Response, error) {
	if err != nil {
		return nil, &answerError{err}
	}
	return response, nil
}

// answerError is the error of a response that does not conform to MCP.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }

// callTool calls a tool and forwards its progress.
func (s *server) callTool(ctx context.Context, x *session, inv *catalog.Invocation,
	params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	if inv.Progress == nil {
		return x.sdk.CallTool(ctx, params)
	}
	token, reports, forget := x.expect()
	defer forget()
	if params.Meta == nil {
		params.Meta = mcp.Meta{}
	}
	params.Meta["progressToken"] = token
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := x.sdk.CallTool(ctx, params)
		answered <- answer{result, err}
	}()
	for {
		select {
		case report := <-reports:
			inv.Progress(report)
		case a := <-answered:
			for len(reports) > 0 {
				inv.Progress(<-reports)
			}
			return a.result, a.err
		}
	}
}

func (s *server) complete(ctx context.Context, x *session, request *abi.Request, t translator) (*abi.Response, error) {
	if c := x.sdk.InitializeResult().Capabilities; c == nil || c.Completions == nil {
		return &abi.Response{Completion: &abi.Completion{Values: []string{}}}, nil
	}
	params := &mcp.CompleteParams{
		Meta:     traceMeta(ctx),
		Ref:      &mcp.CompleteReference{Type: request.Ref.Type},
		Argument: mcp.CompleteParamsArgument{Name: request.Argument.Name, Value: request.Argument.Value},
	}
	if request.Ref.Type == "ref/prompt" {
		params.Ref.Name = s.currentOffer().prompts[request.Ref.Name]
	} else {
		params.Ref.URI, _ = s.spec.inside(request.Ref.URI)
	}
	if len(request.Argument.Resolved) > 0 {
		params.Context = &mcp.CompleteContext{Arguments: request.Argument.Resolved}
	}
	result, err := x.sdk.Complete(ctx, params)
	if err != nil {
		return nil, err
	}
	return t.completion(result), nil
}

// current returns the session, and waits for it if the server is idle or being connected.
func (s *server) current(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if x := s.session; x != nil && x.ctx.Err() == nil {
		s.mu.Unlock()
		return x, nil
	}
	s.waiting++
	patience := reconnectTime
	var failed chan struct{} // nil: attempts are repeated while the call waits
	if s.status.State != Down && (s.status.State != Up || s.lazy()) {
		patience, failed = s.startTimeout()+2*stopGrace, s.attemptFailed
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting--
	}()
	s.rewatch()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		x, arrived := s.session, s.arrived
		s.mu.Unlock()
		if x != nil && x.ctx.Err() == nil {
			return x, nil
		}
		if x != nil {
			s.lost(x)
			continue
		}
		select {
		case <-arrived:
		case <-failed:
			return nil, s.notConnected()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, s.notConnected()
		}
	}
}

func (s *server) notConnected() error {
	status := s.Status()
	why := status.Error
	if status.State != Down {
		why = "it is still being connected"
	}
	return &unreachable{abi.CodeNetwork, fmt.Sprintf(
		"upstream server %s is not connected: %s. It is tried again; nothing was called", s.spec.Name, why)}
}

// vanished is the error of a call whose tool or prompt the server has removed in the meantime.
func (s *server) vanished(kind, name string) error {
	return &unreachable{abi.CodeNotFound, fmt.Sprintf(
		"upstream server %s no longer offers the %s %s: list the %ss again; nothing was called", s.spec.Name, kind,
		quoted(s.spec.prefix()+name), kind)}
}

// unreachable is the error of a call that was not sent.
type unreachable struct{ code, text string }

func (e *unreachable) Error() string { return e.text }
