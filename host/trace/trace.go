// Package trace says where a call spent its time: as spans of OpenTelemetry, from the door it came in by to the vendor that it reached. It is the
// only package that knows OpenTelemetry, and names every attribute.
//
// Spans carry names of the catalog and of the configuration, fixed words and numbers: no arguments, results, queries, headers or secrets. A
// context without a span makes no spans, which costs a look into the context, so nothing but the doors has to know whether traces are on.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Kind is the side that a span is seen from.
type Kind int

// Kinds.
const (
	Internal Kind = iota // work inside the host
	Server               // the answer to a request from outside
	Client               // a request to somebody else
	Consumer             // the work on something that was told earlier
)

var kinds = map[Kind]trace.SpanKind{
	Internal: trace.SpanKindInternal, Server: trace.SpanKindServer, Client: trace.SpanKindClient, Consumer: trace.SpanKindConsumer,
}

// Remote is the span elsewhere that a request belongs to, as W3C Trace Context has it. Zero means none; what is malformed counts as none.
type Remote struct{ Parent, State string }

// w3c reads and writes Remotes.
var w3c propagation.TraceContext

// Names of the parts of a Remote, as headers and in MCP's _meta.
const (
	ParentKey = "traceparent"
	StateKey  = "tracestate"
)

// Tracer begins traces and sends them where New was told to. A nil *Tracer begins none. It is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// Start begins a span: below the one in ctx if there is one, else below the remote one, else the first of its trace. End ends it. The span is
// nil where nothing is recorded; all its methods then do nothing.
func (t *Tracer) Start(ctx context.Context, name string, kind Kind, remote Remote) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if !trace.SpanContextFromContext(ctx).IsValid() && remote.Parent != "" {
		ctx = w3c.Extract(ctx, propagation.MapCarrier{ParentKey: remote.Parent, StateKey: remote.State})
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kinds[kind]))
	return ctx, recording(span)
}

// Start begins a span below the one in ctx. Without one it returns ctx and nil.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, nil
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kinds[kind]))
	return ctx, recording(span)
}

// recording is the span, or nil if it is one that nobody gets to see.
func recording(span trace.Span) *Span {
	if !span.IsRecording() {
		return nil
	}
	return &Span{span}
}

// ID is the trace that ctx belongs to, 32 hexadecimal digits; empty if it belongs to none.
func ID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

// From returns the span in ctx for a request to somebody else. It is zero if there is none.
func From(ctx context.Context) Remote {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return Remote{}
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return Remote{carrier[ParentKey], carrier[StateKey]}
}

// Span is one piece of work. A nil *Span takes everything and does nothing. It is safe for concurrent use.
type Span struct{ span trace.Span }

// Name changes the span's name, when more is known than at its start.
func (s *Span) Name(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Text sets an attribute, unless value is empty.
func (s *Span) Text(key Key, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Int sets an attribute.
func (s *Span) Int(key Key, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(string(key), value))
	}
}

// Fail marks the span as failed, with a word for the kind of failure out of a fixed set. An empty one does nothing.
func (s *Span) Fail(kind string) {
	if s != nil && kind != "" {
		s.span.SetStatus(codes.Error, kind)
		s.span.SetAttributes(attribute.String(string(ErrorType), kind))
	}
}

// End ends the span. It may be called once.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}
