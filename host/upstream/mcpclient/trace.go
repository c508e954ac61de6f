package mcpclient

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// begin starts the span of a request to the server, following the semantic conventions for MCP.
func (s *server) begin(ctx context.Context, inv *catalog.Invocation) (context.Context, *trace.Span) {
	ctx, span := trace.Start(ctx, inv.Request.Method, trace.Client)
	if span == nil {
		return ctx, nil
	}
	span.Text(trace.Method, inv.Request.Method)
	span.Text(trace.Plugin, s.spec.Name)
	if inv.Request.Method == abi.CallTool {
		span.Text(trace.Operation, trace.ExecuteTool)
		span.Text(trace.Tool, inv.Request.Name)
		span.Name(inv.Request.Method + " " + inv.Request.Name)
	}
	return ctx, span
}

// traceMeta returns metadata for a request that makes the server's spans children of the span in ctx, or nil without a
// span.
func traceMeta(ctx context.Context) mcp.Meta {
	at := trace.From(ctx)
	if at.Parent == "" {
		return nil
	}
	meta := mcp.Meta{trace.ParentKey: at.Parent}
	if at.State != "" {
		meta[trace.StateKey] = at.State
	}
	return meta
}
