package gateway

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/trace"
)

// Observation is what is known of one connection of a command when it is over, for metrics.
type Observation struct {
	// Rule is the grant that applied, as the operator wrote it; empty if none did.
	Rule string
	// Outcome is one of Outcomes.
	Outcome string
	// Duration is the time until it was closed.
	Duration time.Duration
	// Sent and Received count bytes, as seen from the command.
	Sent, Received int64
	// TraceID is the trace that the connection belongs to; empty if none.
	TraceID string
}

// sight follows one connection.
type sight struct {
	gateway *Gateway
	tool    string
	start   time.Time
	ctx     context.Context // the command's, for its trace
	span    *trace.Span
	// host and rule are empty as long as they are not known.
	host, rule string
}

func (s *session) watch() *sight {
	ctx, span := trace.Start(s.ctx, "connect", trace.Client)
	return &sight{gateway: s.Gateway, tool: s.client.Tool, start: time.Now(), ctx: ctx, span: span}
}

func (s *sight) end(outcome string, sent, received int64) {
	o := Observation{Rule: s.rule, Outcome: outcome, Duration: time.Since(s.start), Sent: sent, Received: received, TraceID: trace.ID(s.ctx)}
	if s.gateway.observe != nil {
		s.gateway.observe(o)
	}
	if o.Rule != "" { // what no rule allows may be anything
		s.span.Text(trace.ServerAddress, s.host)
	}
	s.span.Text(trace.Rule, o.Rule)
	s.span.Text(trace.Outcome, outcome)
	s.span.Int(trace.Output, received)
	if outcome != OutcomeOK {
		s.span.Fail(outcome)
	}
	s.span.End()
	s.gateway.log.LogAttrs(s.ctx, slog.LevelDebug, "command connection", slog.String("plugin", s.gateway.plugin), slog.String("tool", s.tool),
		slog.String("host", s.host), slog.String("rule", o.Rule), slog.String("outcome", outcome),
		slog.Int64("sent", sent), slog.Int64("received", received), slog.Duration("duration", o.Duration))
}

// link is a connection to a granted host. It reports what was sent and received when it is closed.
type link struct {
	net.Conn
	sight          *sight
	sent, received atomic.Int64
	once           sync.Once
	err            error
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.received.Add(int64(n))
	return n, err
}

func (l *link) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.sent.Add(int64(n))
	return n, err
}

// CloseWrite says that nothing more will be sent.
func (l *link) CloseWrite() error { return closeWrite(l.Conn) }

func (l *link) Close() error {
	l.once.Do(func() {
		l.err = l.Conn.Close()
		l.sight.end(OutcomeOK, l.sent.Load(), l.received.Load())
	})
	return l.err
}
