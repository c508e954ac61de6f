// Package trace records OpenTelemetry spans of calls, from the frontend to the services that a tool requests. It wraps
// the OpenTelemetry SDK and defines the names of all attributes.
//
// New returns a Tracer, with which frontends start traces; Start begins a child Span of the one in the context.
// Attributes are names from the catalog and the configuration, constants and numbers: never arguments, results,
// queries, headers or secrets. Only frontends need a Tracer: without a span in the context, Start exports nothing.
//
// Record keeps the spans of one call in memory as well, for those who look at that call.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/hako-run/hako/internal/clip"
)

// Kind is the role of a span.
type Kind int

// Kinds.
const (
	Internal Kind = iota // work inside the host
	Server               // handles a request
	Client               // sends a request
	Consumer             // handles a message received earlier
)

var kinds = map[Kind]trace.SpanKind{
	Internal: trace.SpanKindInternal, Server: trace.SpanKindServer, Client: trace.SpanKindClient,
	Consumer: trace.SpanKindConsumer,
}

// Remote is the W3C Trace Context of a request. The zero value, and a malformed one, mean none.
type Remote struct{ Parent, State string }

// w3c parses and formats Remotes.
var w3c propagation.TraceContext

// Names of the fields of a Remote in HTTP headers and in MCP's _meta.
const (
	ParentKey = "traceparent"
	StateKey  = "tracestate"
)

// Tracer starts traces and exports them. A nil *Tracer records nothing. It is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// Start starts a span, which the caller ends with End. Its parent is the span in ctx, else remote, else none. The span
// is nil if it is not recorded; methods of a nil *Span do nothing.
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

// Start starts a child of the span in ctx, and adds it to the Recording in ctx. Without either it returns ctx and nil.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	var span trace.Span
	if above := trace.SpanFromContext(ctx); above.IsRecording() {
		ctx, span = above.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kinds[kind]))
	}
	var step *recordedStep
	if at, ok := ctx.Value(positionKey{}).(position); ok {
		ctx, step = at.start(ctx, name)
	}
	if span == nil && step == nil {
		return ctx, nil
	}
	return ctx, &Span{span, step}
}

// recording returns the span, or nil if it is not sampled.
func recording(span trace.Span) *Span {
	if !span.IsRecording() {
		return nil
	}
	return &Span{span: span}
}

// ID returns the trace ID of ctx, 32 hexadecimal digits, or "".
func ID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

// From returns the span in ctx as the trace context of an outgoing request. It is zero if there is none.
func From(ctx context.Context) Remote {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return Remote{}
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return Remote{carrier[ParentKey], carrier[StateKey]}
}

// Span is one operation. Methods of a nil *Span do nothing. It is safe for concurrent use.
type Span struct {
	span trace.Span    // nil if it is not exported
	step *recordedStep // nil if it is not in a Recording
}

// Name renames the span.
func (s *Span) Name(name string) {
	if s == nil {
		return
	}
	if s.span != nil {
		s.span.SetName(clip.Marked(name, maxExported))
	}
	s.step.change(func(step *Step) { step.Name = clip.Marked(name, maxValue) })
}

// maxExported bounds the text of an exported attribute, in bytes. Ended spans wait in a queue for their export.
const maxExported = 4 << 10

// Text sets an attribute to a copy of at most 4 KiB of value, unless value is empty.
func (s *Span) Text(key Key, value string) {
	if s == nil || value == "" {
		return
	}
	if s.span != nil {
		s.span.SetAttributes(attribute.String(string(key), clip.Marked(value, maxExported)))
	}
	s.step.set(key, value)
}

// Int sets an attribute.
func (s *Span) Int(key Key, value int64) {
	if s == nil {
		return
	}
	if s.span != nil {
		s.span.SetAttributes(attribute.Int64(string(key), value))
	}
	s.step.set(key, value)
}

// Fail marks the span as failed, with the kind of failure from a fixed set. An empty kind does nothing.
func (s *Span) Fail(kind string) {
	if s == nil || kind == "" {
		return
	}
	if s.span != nil {
		s.span.SetStatus(codes.Error, kind)
		s.span.SetAttributes(attribute.String(string(ErrorType), kind))
	}
	s.step.change(func(step *Step) { step.Failure = clip.Marked(kind, maxValue) })
}

// End ends the span. It must be called only once.
func (s *Span) End() {
	if s == nil {
		return
	}
	if s.span != nil {
		s.span.End()
	}
	s.step.end()
}
