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

// Observation describes a closed or refused connection of a command, for metrics.
type Observation struct {
	// Rule is the grant that applied, as the operator wrote it; empty if none did.
	Rule string
	// Outcome is one of the Outcome constants.
	Outcome string
	// Duration is the time from accept to close.
	Duration time.Duration
	// Sent and Received are the bytes that the command sent and received.
	Sent, Received int64
}

// observer records one connection for metrics and its trace.
type observer struct {
	gateway *Gateway
	tool    string
	start   time.Time
	ctx     context.Context // of the command, for its trace
	span    *trace.Span
	// host and rule are empty until they are known.
	host, rule string
}

func (s *session) watch() *observer {
	ctx, span := trace.Start(s.ctx, "connect", trace.Client)
	return &observer{gateway: s.Gateway, tool: s.client.Tool, start: time.Now(), ctx: ctx, span: span}
}

func (s *observer) end(outcome string, sent, received int64) {
	o := Observation{Rule: s.rule, Outcome: outcome, Duration: time.Since(s.start), Sent: sent, Received: received}
	if s.gateway.observe != nil {
		s.gateway.observe(o)
	}
	if o.Rule != "" { // without a rule the host may be any text
		s.span.Text(trace.ServerAddress, s.host)
	}
	s.span.Text(trace.Rule, o.Rule)
	s.span.Text(trace.Outcome, outcome)
	s.span.Int(trace.Output, received)
	if outcome != OutcomeOK {
		s.span.Fail(outcome)
	}
	s.span.End()
	s.gateway.log.LogAttrs(s.ctx, slog.LevelDebug, "command connection", slog.String("plugin", s.gateway.plugin),
		slog.String("tool", s.tool),
		slog.String("host", s.host), slog.String("rule", o.Rule), slog.String("outcome", outcome),
		slog.Int64("sent", sent), slog.Int64("received", received), slog.Duration("duration", o.Duration))
}

// countedConn is a connection to a granted host. When it is closed, it reports the bytes sent and received.
type countedConn struct {
	net.Conn
	observer       *observer
	sent, received atomic.Int64
	once           sync.Once
	err            error
}

func (l *countedConn) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.received.Add(int64(n))
	return n, err
}

func (l *countedConn) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.sent.Add(int64(n))
	return n, err
}

// CloseWrite closes the sending side.
func (l *countedConn) CloseWrite() error { return closeWrite(l.Conn) }

func (l *countedConn) Close() error {
	l.once.Do(func() {
		l.err = l.Conn.Close()
		l.observer.end(OutcomeOK, l.sent.Load(), l.received.Load())
	})
	return l.err
}
