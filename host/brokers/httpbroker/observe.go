package httpbroker

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Observation describes a finished request of a guest, for metrics.
type Observation struct {
	// Rule is the name of the rule that applied; empty if there is none.
	Rule string
	// Status is the response's status; zero without a response.
	Status int
	// Code is the code of the *abi.Error for the guest, from the request or from reading the body; empty if there is
	// none.
	Code string
	// Source is the source of the response; empty without a response.
	Source string
	// Tries is the number of sent requests, including retries, redirects and revalidations.
	Tries int
	// Duration is the time from the start until the body was read or closed.
	Duration time.Duration
	// Bytes is the number of bytes of the decompressed body that the guest read.
	Bytes int64
	// TraceID is the trace of the request; empty if there is none.
	TraceID string
}

// report reports the transaction to the observer and the log.
func (t *Transaction) report() {
	o := Observation{Duration: time.Since(t.start), Bytes: t.bytes, TraceID: trace.ID(t.outer)}
	if own := (*abi.Error)(nil); errors.As(t.err, &own) && own != errClosed {
		o.Code = own.Code
	}
	if t.answer != nil {
		o.Status, o.Source = t.answer.Status, t.answer.source
	}
	attrs := []slog.Attr{slog.String("plugin", t.call.Plugin), slog.String("tool", t.call.Tool)}
	if r := t.request; r != nil {
		o.Tries = *r.tries
		attrs = append(attrs, slog.String("method", r.method), slog.String("url", r.target.shown()))
		if r.rule != nil {
			o.Rule = r.rule.name
		}
	}
	if t.broker.observe != nil {
		t.broker.observe(o)
	}
	t.trace(&o)
	t.log(attrs, &o)
}

// trace ends the request's span. Its only attribute from the URL is the host.
func (t *Transaction) trace(o *Observation) {
	defer t.span.End()
	if r := t.request; r != nil {
		t.span.Name("http " + r.method)
		t.span.Text(trace.HTTPMethod, r.method)
		if r.rule != nil { // without a rule the host may be any text
			t.span.Text(trace.ServerAddress, r.target.host)
		}
	}
	t.span.Text(trace.Rule, o.Rule)
	t.span.Text(trace.Source, o.Source)
	t.span.Int(trace.HTTPResends, int64(max(0, o.Tries-1)))
	t.span.Int(trace.Output, o.Bytes)
	if o.Status > 0 {
		t.span.Int(trace.HTTPStatus, int64(o.Status))
	}
	t.span.Fail(o.Code)
	if o.Code == "" && o.Status >= 400 {
		t.span.Fail(strconv.Itoa(o.Status))
	}
}

func (t *Transaction) log(attrs []slog.Attr, o *Observation) {
	level, message := slog.LevelDebug, "http request"
	var refused *outbound.RefusedError
	if errors.As(t.err, &refused) {
		level, message = slog.LevelWarn, "http address refused"
		attrs = append(attrs, slog.String("address", refused.Addr.String()))
	}
	attrs = append(attrs, slog.String("rule", o.Rule), slog.Int("status", o.Status), slog.String("code", o.Code),
		slog.String("source", o.Source), slog.Int("tries", o.Tries), slog.Int64("bytes", o.Bytes),
		slog.Duration("duration", o.Duration))
	t.broker.log.LogAttrs(t.outer, level, message, attrs...)
}
