package mcpserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// internalText is the only text that clients get about a fault of the host.
const internalText = "internal error of the server: its log has the details"

// canceledText answers a request that ends before its answer.
const canceledText = "the request was canceled"

// codeBusy means that a limit on what clients may use has been reached. MCP 2026-07-28 asks for new codes to stay out
// of JSON-RPC's reserved range; HTTP has this number for it.
const codeBusy = 429

// protocolError converts the error of a call to a JSON-RPC error, and logs what clients must not see.
func (s *Server) protocolError(call *pipeline.Call, err error) error {
	var wire *jsonrpc.Error
	var missing *pipeline.NotFoundError
	switch {
	case errors.As(err, &wire):
		return wire
	case isError[*approval.PendingError](err):
		return err // it becomes a result: see input
	case errors.As(err, &missing):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: missing.Error(),
			Data: uriData(call.Request.URI)}
	case isError[*pipeline.NotAllowedError](err), isError[*pipeline.InvalidError](err):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case errors.Is(err, pipeline.ErrInternal): // the pipeline has logged the cause
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	case isError[*limit.Error](err), isError[*catalog.GuestError](err), errors.Is(err, pipeline.ErrStopped):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: canceledText}
	}
	var guest *abi.Error
	if errors.As(err, &guest) {
		return guestError(call, guest)
	}
	s.options.Logger.Error("an MCP request failed with an internal error", "method", call.Request.Method, "err", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalText}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// guestError returns a guest's explanation why it cannot serve a request.
func guestError(call *pipeline.Call, err *abi.Error) error {
	switch err.Code {
	case abi.CodeNotFound:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Message, Data: uriData(call.Request.URI)}
	case abi.CodeInvalid:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Message}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Message}
}

// uriData is the data of the error for a resource that does not exist (MCP 2026-07-28, resources, error handling).
// It is nil without a URI.
func uriData(uri string) json.RawMessage {
	if uri == "" {
		return nil
	}
	return mustJSON(map[string]string{"uri": uri})
}
