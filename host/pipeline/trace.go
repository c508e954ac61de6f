package pipeline

import (
	"context"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// startSpan starts the span of a call and returns the ID of its trace.
func (p *Pipeline) startSpan(ctx context.Context, call *Call) (context.Context, *trace.Span, string) {
	if call.parent != nil {
		ctx, span := trace.Start(ctx, call.Request.Method, trace.Internal) // a step of the parent
		return ctx, span, trace.ID(ctx)
	}
	kind := trace.Internal
	if transports[call.Caller.Frontend] != "" {
		kind = trace.Server
	}
	ctx, span := p.options.Tracer.Start(ctx, call.Request.Method, kind, call.Caller.Trace)
	if id := trace.ID(ctx); id != "" {
		return ctx, span, id
	}
	return ctx, span, call.Caller.TraceID
}

// transports are the values of network.transport for the frontends of MCP.
var transports = map[string]string{FrontendStdio: "pipe", FrontendHTTP: "tcp"}

// endSpan sets the attributes of a call's span according to the semantic conventions for MCP, and ends it.
func endSpan(span *trace.Span, r *openRecord) {
	if span == nil {
		return
	}
	defer span.End()
	span.Text(trace.Method, r.Method)
	switch r.Method {
	case abi.CallTool:
		span.Text(trace.Operation, trace.ExecuteTool)
		span.Text(trace.Tool, r.Name)
		span.Name(spanName(r))
	case abi.GetPrompt:
		span.Text(trace.Prompt, r.Name)
		span.Name(spanName(r))
	}
	span.Text(trace.NetworkTransport, transports[r.Caller.Frontend])
	span.Text(trace.RequestID, r.Caller.RequestID)
	span.Text(trace.Call, r.ID)
	span.Text(trace.Session, r.Caller.Session)
	span.Text(trace.Frontend, r.Caller.Frontend)
	span.Text(trace.Tenant, r.Caller.Tenant)
	span.Text(trace.Plugin, r.Source)
	span.Text(trace.Outcome, string(r.Outcome))
	span.Int(trace.Input, int64(r.Input))
	span.Int(trace.Output, int64(r.Output))
	span.Int(trace.Steps, r.Steps)
	if r.Outcome != OK && r.Outcome != Asked {
		span.Fail(string(r.Outcome))
	}
}

// spanName is "{method} {target}". The target is a name in the catalog, never text of a client.
func spanName(r *openRecord) string {
	if r.Name == "" {
		return r.Method
	}
	return r.Method + " " + r.Name
}
