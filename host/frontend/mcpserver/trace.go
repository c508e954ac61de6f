package mcpserver

import (
	"context"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// piped are the methods that the pipeline makes spans of.
var piped = map[string]bool{abi.CallTool: true, abi.ReadResource: true, abi.GetPrompt: true, abi.Complete: true}

// begin begins the span of a request that does not reach the pipeline.
func (s *Server) begin(ctx context.Context, method string, req mcp.Request) (context.Context, *trace.Span) {
	if s.options.Tracer == nil || piped[method] || isNotification(method) {
		return ctx, nil
	}
	if !transport.Known(method) {
		method = methodOther
	}
	var from pipeline.Caller
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		setTrace(&from, extra.Header.Get(trace.ParentKey), extra.Header.Get(trace.StateKey))
	}
	if params := req.GetParams(); params != nil {
		meta := params.GetMeta()
		parent, _ := meta[trace.ParentKey].(string)
		state, _ := meta[trace.StateKey].(string)
		setTrace(&from, parent, state)
	}
	ctx, span := s.options.Tracer.Start(ctx, method, trace.Server, from.Trace)
	span.Text(trace.Method, method)
	return ctx, span
}

// failed marks a span with the code of a JSON-RPC error.
func failed(span *trace.Span, err error) {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		span.Fail(strconv.FormatInt(wire.Code, 10))
	}
}
