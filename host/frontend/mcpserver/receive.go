package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/internal/demote"
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
		if x := exchangeOf(req.GetExtra()); x != nil && x.stream != nil {
			ctx = transport.WithStream(ctx, x.stream)
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

// noteSession updates the table of sessions over HTTP, their calls and the store after a request that the SDK has
// accepted.
func (s *Server) noteSession(ctx context.Context, req mcp.Request) error {
	x := exchangeOf(req.GetExtra())
	if x == nil {
		return nil
	}
	switch req := req.(type) {
	case *mcp.ServerRequest[*mcp.InitializeParams]:
		return s.noteOpened(ctx, req.Session, x)
	default:
		if req.GetSession().ID() != "" {
			return s.replicas.note(ctx, req)
		}
	}
	return nil
}

// noteOpened registers a session that the SDK has accepted, or closes it if it cannot be stored.
func (s *Server) noteOpened(ctx context.Context, sdk *mcp.ServerSession, x *exchange) error {
	if sdk.ID() == "" {
		return nil
	}
	err := s.replicas.add(ctx, sdk, x)
	if err == nil && s.sessions.attach(s.sessions.add(sdk.ID(), sdk.InitializeParams(), x), x.conn, sdk) {
		return nil
	}
	go sdk.Close() // it waits for this request
	if isError[*jsonrpc.Error](err) {
		return err
	}
	if err != nil {
		s.options.Logger.Warn("storing a session failed", "err", err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: "the session cannot be stored at the moment: try again later"}
}

// enterStdio applies the limits to a request over stdio. Requests over HTTP are checked before they are decoded.
func (s *Server) enterStdio(ctx context.Context, method string, req mcp.Request) (context.Context, func(), error) {
	if exchangeOf(req.GetExtra()) != nil || isNotification(method) {
		return ctx, func() {}, nil
	}
	cancel := func() {} // the context of a call ends when the SDK has written the answer (see Server.answer)
	if method == transport.MethodListen {
		ctx, cancel = context.WithCancel(ctx)
	}
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

func isNotification(method string) bool { return strings.HasPrefix(method, "notifications/") }

// withCode adds a JSON-RPC code to errors of the SDK that have none. They are about requests in the wrong order.
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
