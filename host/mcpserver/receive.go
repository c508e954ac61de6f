package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/internal/demote"
	"github.com/hako-run/hako/host/mcpserver/limits"
	"github.com/hako-run/hako/host/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// receive is the middleware that every request passes once the SDK has decoded it.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				s.logPanic(method, cause)
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalText}
			}
		}()
		defer s.observedStdio(method, req, time.Now())
		ctx, leave, err := s.enterStdio(ctx, method, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		if over := exchangeOf(req.GetExtra()); over != nil && over.stream != nil {
			ctx = transport.WithStream(ctx, over.stream)
		}
		if opening, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams]); ok {
			// The SDK answers with the negotiated version, and takes that of the parameters for the session's.
			opening.Params.ProtocolVersion = transport.Negotiate(opening.Params.ProtocolVersion)
		}
		ctx, span := s.begin(ctx, method, req)
		defer span.End()
		result, err = s.dispatch(ctx, method, req, next)
		if err == nil {
			err = s.noteSession(ctx, req)
		}
		if err != nil {
			result = nil
		}
		err = withCode(err)
		failed(span, err)
		return result, err
	}
}

// dispatch passes requests for what the SDK does not list to the pipeline too: it records them, and knows more of a
// name than that it is not listed.
func (s *Server) dispatch(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result,
	error) {
	switch req := req.(type) {
	case *mcp.ListToolsRequest, *mcp.ListResourcesRequest, *mcp.ListResourceTemplatesRequest, *mcp.ListPromptsRequest:
		if view := s.viewFor(req); view.Selected {
			return s.listSelected(ctx, req, view)
		}
		if tools, ok := req.(*mcp.ListToolsRequest); ok {
			return s.listTools(ctx, method, tools, next)
		}
	case *mcp.CallToolRequest:
		if !s.extended[req.Params.Name] {
			return orError(s.callTool(ctx, req))
		}
	case *mcp.GetPromptRequest:
		if _, ok := s.catalog.View().Prompt(req.Params.Name); !ok && !s.extended[req.Params.Name] {
			return orError(s.getPrompt(ctx, req))
		}
	case *mcp.ReadResourceRequest:
		if !hasResource(s.catalog.View(), req.Params.URI) && !s.extended[req.Params.URI] {
			return orError(s.readResource(ctx, req))
		}
	}
	return next(ctx, method, req)
}

// listTools lists the tools that the caller may call, or ask for. That makes pages shorter, but none is empty before
// the last.
func (s *Server) listTools(ctx context.Context, method string, req *mcp.ListToolsRequest,
	next mcp.MethodHandler) (mcp.Result, error) {
	if req.Params == nil {
		req.Params = new(mcp.ListToolsParams)
	}
	caller := s.newCall(req, nil, abi.Request{}).Caller
	for {
		result, err := next(ctx, method, req)
		page, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		page.Tools = slices.DeleteFunc(page.Tools, func(tool *mcp.Tool) bool { return s.hides(caller, tool.Name) })
		for i, tool := range page.Tools {
			page.Tools[i] = s.described(caller, tool)
		}
		if len(page.Tools) > 0 || page.NextCursor == "" {
			return page, nil
		}
		req.Params.Cursor = page.NextCursor
	}
}

// hides reports whether a tool is there, but not for the caller.
func (s *Server) hides(caller pipeline.Caller, name string) bool {
	governor, governed := s.calls.(governor)
	tool, ok := s.view(caller).Tool(name)
	return governed && ok && !governor.Visible(caller, tool)
}

// described returns a tool with its description for the caller. listed is shared between callers and not changed.
func (s *Server) described(caller pipeline.Caller, listed *mcp.Tool) *mcp.Tool {
	governor, governed := s.calls.(governor)
	tool, ok := s.catalog.View().Tool(listed.Name)
	if !governed || !ok {
		return listed
	}
	described := governor.Described(caller, tool)
	if described == tool {
		return listed
	}
	own := *listed
	own.Description = described.Spec.Description.In(s.now().Language)
	return &own
}

// noteSession keeps the table of sessions over HTTP, the calls in it, and what all replicas know of them, up to date
// with what the SDK has taken in.
func (s *Server) noteSession(ctx context.Context, req mcp.Request) error {
	over := exchangeOf(req.GetExtra())
	if over == nil {
		return nil
	}
	switch req := req.(type) {
	case *mcp.ServerRequest[*mcp.InitializeParams]:
		return s.noteOpened(ctx, req.Session, over)
	default:
		if req.GetSession().ID() != "" {
			return s.replicas.note(ctx, req)
		}
	}
	return nil
}

// noteOpened registers a session that the SDK has accepted. It closes one that cannot be kept.
func (s *Server) noteOpened(ctx context.Context, sdk *mcp.ServerSession, over *exchange) error {
	if sdk.ID() == "" {
		return nil
	}
	err := s.replicas.add(ctx, sdk, over)
	if err == nil && s.sessions.attach(s.sessions.add(sdk.ID(), sdk.InitializeParams(), over), over.conn, sdk) {
		return nil
	}
	go sdk.Close() // it waits for this request
	if atFault[*jsonrpc.Error](err) {
		return err
	}
	if err != nil {
		s.options.Logger.Warn("a session cannot be kept", "err", err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: "the session cannot be kept at the moment: try again later"}
}

func hasResource(view *catalog.View, uri string) bool {
	if _, ok := view.Resource(uri); ok {
		return true
	}
	_, _, ok := view.Template(uri)
	return ok
}

// orError keeps a nil result a nil interface.
func orError[R mcp.Result](result R, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

// enterStdio holds a request over stdio against the limits; those over HTTP have been, before they were decoded.
func (s *Server) enterStdio(ctx context.Context, method string, req mcp.Request) (context.Context, func(), error) {
	if exchangeOf(req.GetExtra()) != nil || isNotification(method) {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var leave func()
	err := s.limiter.Allow("stdio", 1)
	if err == nil && method == transport.MethodListen {
		leave, err = s.limiter.EnterStream("stdio", cancel)
	} else if err == nil {
		leave, err = s.limiter.Enter("stdio", 1)
	}
	if err == nil {
		return ctx, func() { cancel(); leave() }, nil
	}
	cancel()
	if busy, ok := errors.AsType[*limits.BusyError](err); ok {
		err = &jsonrpc.Error{Code: codeBusy, Message: busy.Reason}
	}
	return ctx, nil, err
}

func isNotification(method string) bool {
	return len(method) > len("notifications/") && method[:len("notifications/")] == "notifications/"
}

// withCode gives errors of the SDK that have no JSON-RPC code the one for a request that breaks the protocol's order:
// that is what they are about.
func withCode(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}

// demoted logs the SDK's warnings and errors as debug records: clients cause them.
func demoted(logger *slog.Logger) *slog.Logger {
	return demote.Logger(logger).With("component", "mcp-sdk")
}
