package pipeline

import (
	"context"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// begin begins the call's span and its record.
func (p *Pipeline) begin(ctx context.Context, call *Call) (context.Context, *trace.Span, string) {
	kind := trace.Internal
	if transports[call.Caller.Door] != "" {
		kind = trace.Server
	}
	ctx, span := p.options.Tracer.Start(ctx, call.Request.Method, kind, call.Caller.Trace)
	if id := trace.ID(ctx); id != "" {
		return ctx, span, id
	}
	return ctx, span, call.Caller.TraceID
}

// transports are what network.transport is at the doors of MCP.
var transports = map[string]string{DoorStdio: "pipe", DoorHTTP: "tcp"}

// describe says of a call's span what is known when it has ended, as the semantic conventions for MCP have it.
func describe(span *trace.Span, r *Record) {
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
	span.Text(trace.NetworkTransport, transports[r.Caller.Door])
	span.Text(trace.RequestID, r.Caller.RequestID)
	span.Text(trace.Session, r.Caller.Session)
	span.Text(trace.Door, r.Caller.Door)
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

// spanName is "{method} {target}". The target is the catalog's, never what a client made up.
func spanName(r *Record) string {
	if r.Name == "" {
		return r.Method
	}
	return r.Method + " " + r.Name
}
