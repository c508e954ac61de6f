package execbroker

import (
	"context"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Observation is what is known of one command when it is over, for metrics. It holds nothing of its arguments.
type Observation struct {
	// Program is the granted program that was asked for; "line" for a line, "other" for one that was not granted.
	Program string
	// Outcome is one of Outcomes.
	Outcome  string
	Duration time.Duration
	// TraceID is the trace that the command belongs to; empty if none.
	TraceID string
}

// Outcomes of a command: it succeeded, ended with another status or by a signal, its time was up, it wrote too much, was not allowed to
// start, or could not be run or was given up.
const (
	OutcomeOK       = "ok"
	OutcomeStatus   = "status"
	OutcomeTimeout  = "timeout"
	OutcomeOutput   = "output"
	OutcomeRefused  = "refused"
	OutcomeCanceled = "canceled"
	OutcomeFailed   = "failed"
)

// sight follows one command.
type sight struct {
	broker  *Broker
	tool    string
	program string
	start   time.Time
	ctx     context.Context // the call's, for its trace
	span    *trace.Span
}

func (b *Broker) watch(ctx context.Context, call *broker.Call, request *abi.ExecRequest) *sight {
	ctx, span := trace.Start(ctx, "exec", trace.Internal)
	return &sight{b, call.Tool, b.label(request), time.Now(), ctx, span}
}

// label is the name of a granted program, so that there are no more labels than programs.
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

func (s *sight) refused(err *abi.Error) *abi.Error {
	outcome := OutcomeRefused
	if err.Code == abi.CodeInternal || err.Code == abi.CodeBusy {
		outcome = OutcomeFailed
	}
	s.report(outcome)
	return err
}

func (s *sight) ended(exit *abi.ExecExit) {
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

func (s *sight) report(outcome string) {
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
	s.broker.log.LogAttrs(s.ctx, slog.LevelDebug, "command", slog.String("plugin", s.broker.plugin), slog.String("tool", s.tool),
		slog.String("program", o.Program), slog.String("outcome", o.Outcome), slog.Duration("duration", o.Duration))
}
