package execbroker

import (
	"context"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Observation describes a command that has ended, for metrics. It does not contain arguments.
type Observation struct {
	// Program is the requested program if it is granted, "line" for a command line, and "other" for any other program.
	Program string
	// Outcome is one of the Outcome constants below.
	Outcome  string
	Duration time.Duration
	// TraceID is the trace of the command; empty if there is none.
	TraceID string
}

// Outcomes of a command: it succeeded, ended with another status or by a signal, timed out, wrote too much, was
// refused, or failed to run or was canceled.
const (
	OutcomeOK       = "ok"
	OutcomeStatus   = "status"
	OutcomeTimeout  = "timeout"
	OutcomeOutput   = "output"
	OutcomeRefused  = "refused"
	OutcomeCanceled = "canceled"
	OutcomeFailed   = "failed"
)

// observer records one command for metrics and its trace.
type observer struct {
	broker  *Broker
	tool    string
	program string
	start   time.Time
	ctx     context.Context // of the call, for its trace
	span    *trace.Span
}

func (b *Broker) watch(ctx context.Context, call *broker.Call, request *abi.ExecRequest) *observer {
	ctx, span := trace.Start(ctx, "exec", trace.Internal)
	return &observer{b, call.Tool, b.label(request), time.Now(), ctx, span}
}

// label returns the label of a request. There are no more labels than granted programs and the two other values.
func (b *Broker) label(request *abi.ExecRequest) string {
	if request.Line != "" {
		return "line"
	}
	for _, program := range b.base.Programs {
		if request.Argv[0] == program.Name || request.Argv[0] == program.Path {
			return program.Name
		}
	}
	return "other"
}

func (s *observer) refused(err *abi.Error) *abi.Error {
	outcome := OutcomeRefused
	if err.Code == abi.CodeInternal || err.Code == abi.CodeBusy {
		outcome = OutcomeFailed
	}
	s.report(outcome)
	return err
}

func (s *observer) ended(exit *abi.ExecExit) {
	switch {
	case exit.Error != nil && exit.Error.Code == abi.CodeCanceled:
		s.report(OutcomeCanceled)
	case exit.Error != nil:
		s.report(OutcomeFailed)
	case exit.Stopped != "":
		s.report(exit.Stopped)
	case exit.ExitCode != 0:
		s.report(OutcomeStatus)
	default:
		s.report(OutcomeOK)
	}
}

func (s *observer) report(outcome string) {
	o := Observation{Program: s.program, Outcome: outcome, Duration: time.Since(s.start), TraceID: trace.ID(s.ctx)}
	if s.broker.observe != nil {
		s.broker.observe(o)
	}
	s.span.Text(trace.Program, o.Program)
	s.span.Text(trace.Outcome, outcome)
	if outcome != OutcomeOK && outcome != OutcomeStatus {
		s.span.Fail(outcome)
	}
	s.span.End()
	s.broker.log.LogAttrs(s.ctx, slog.LevelDebug, "command", slog.String("plugin", s.broker.plugin),
		slog.String("tool", s.tool),
		slog.String("program", o.Program), slog.String("outcome", o.Outcome), slog.Duration("duration", o.Duration))
}
