package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// reconnectTime is how long a call waits for a server that is being connected again.
const reconnectTime = 5 * time.Second

var _ catalog.Backend = (*server)(nil)

// Call passes one request on to the server. A call that finds the server's session forgotten, and so was not served, is made once more in
// a new one; no other is repeated.
func (s *server) Call(parent context.Context, inv *catalog.Invocation) (*abi.Response, error) {
	limits := inv.Limits.Or(s.limits)
	if int64(len(inv.Request.Arguments)) > limits.Input {
		return nil, newLimitError(s.spec.Name, sandbox.LimitInput, bytesText(limits.Input))
	}
	if err := s.gate.Enter(parent, s.spec.Name); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	ctx, cancel := context.WithTimeoutCause(parent, limits.Time, newLimitError(s.spec.Name, sandbox.LimitTime, limits.Time.String()))
	defer cancel()
	response, err := s.attempt(ctx, inv)
	if errors.Is(err, mcp.ErrSessionMissing) {
		response, err = s.attempt(ctx, inv)
	}
	switch {
	case err != nil:
		return nil, s.callError(parent, ctx, inv.Request.Method, err)
	case int64(size(response)) > limits.Output:
		return nil, newLimitError(s.spec.Name, sandbox.LimitOutput, bytesText(limits.Output))
	}
	return response, nil
}

// attempt makes the call in the session that there is, or is about to be.
func (s *server) attempt(ctx context.Context, inv *catalog.Invocation) (*abi.Response, error) {
	x, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })()
	response, err := s.do(ctx, x, inv)
	if err != nil && ctx.Err() == nil {
		s.suspect(x, err)
	}
	return response, err
}

// suspect looks at a session in which a call has failed. One that is over is not used again; whether others are shows when the server is
// asked for its lists.
func (s *server) suspect(x *session, err error) {
	var bad *answerError
	switch {
	case answered(err) != nil, errors.As(err, &bad):
	case x.program != nil, errors.Is(err, mcp.ErrSessionMissing), errors.Is(err, mcp.ErrConnectionClosed):
		s.lost(x)
		x.end(reason(err))
	default:
		x.change()
	}
}

func (s *server) do(ctx context.Context, x *session, inv *catalog.Invocation) (*abi.Response, error) {
	request, t := inv.Request, translator{s.spec.scheme()}
	switch request.Method {
	case abi.CallTool:
		result, err := s.callTool(ctx, x, inv)
		if err != nil {
			return nil, err
		}
		return broken(t.tool(result))
	case abi.GetPrompt:
		params := &mcp.GetPromptParams{Name: s.names().prompts[request.Name]}
		if len(request.Arguments) > 0 {
			if err := json.Unmarshal(request.Arguments, &params.Arguments); err != nil {
				return nil, err
			}
		}
		result, err := x.sdk.GetPrompt(ctx, params)
		if err != nil {
			return nil, err
		}
		return broken(t.prompt(result))
	case abi.ReadResource:
		result, err := x.sdk.ReadResource(ctx, &mcp.ReadResourceParams{URI: strings.TrimPrefix(request.URI, t.scheme)})
		if err != nil {
			return nil, err
		}
		return broken(t.resource(result))
	}
	return s.complete(ctx, x, request, t)
}

// broken is an answer that is none of MCP's.
func broken(response *abi.Response, err error) (*abi.Response, error) {
	if err != nil {
		return nil, &answerError{err}
	}
	return response, nil
}

// answerError says that a server answered with what it must not.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }

func (s *server) callTool(ctx context.Context, x *session, inv *catalog.Invocation) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: s.names().tools[inv.Request.Name], Arguments: inv.Request.Arguments}
	if inv.Progress == nil {
		return x.sdk.CallTool(ctx, params)
	}
	token, reports, forget := x.expect()
	defer forget()
	params.Meta = mcp.Meta{"progressToken": token}
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
		Ref:      &mcp.CompleteReference{Type: request.Ref.Type},
		Argument: mcp.CompleteParamsArgument{Name: request.Argument.Name, Value: request.Argument.Value},
	}
	if request.Ref.Type == "ref/prompt" {
		params.Ref.Name = s.names().prompts[request.Ref.Name]
	} else {
		params.Ref.URI = strings.TrimPrefix(request.Ref.URI, t.scheme)
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

// current is the session, as soon as there is one.
func (s *server) current(ctx context.Context) (*session, error) {
	timer := time.NewTimer(reconnectTime)
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
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, s.notConnected()
		}
	}
}

func (s *server) notConnected() error {
	return &unreachable{fmt.Sprintf("upstream server %s is not connected: %s. It is tried again; nothing was called", s.spec.Name, s.Status().Error)}
}

// unreachable says that a call did not leave the host.
type unreachable struct{ text string }

func (e *unreachable) Error() string { return e.text }
