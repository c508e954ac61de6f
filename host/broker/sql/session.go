package sqlbroker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/database"
	"github.com/hako-run/hako/pdk/abi"
)

// session is what the broker keeps for one guest call.
type session struct {
	broker *Broker
	call   *broker.Call
	tenant *tenant           // nil until the first statement
	db     *database.Session // the same
	blobs  []byte            // of the last answer, until the guest takes them
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return &session{broker: b, call: call} })
}

// open returns the session with the database of the call's tenant.
func (s *session) open(ctx context.Context) (*database.Session, *abi.Error) {
	if s.db != nil {
		return s.db, nil
	}
	t, err := s.broker.use(ctx, s.call.Tenant)
	if err != nil {
		return nil, told(err)
	}
	s.tenant, s.db = t, t.db.Session(s.broker.fault)
	return s.db, nil
}

// chargeWork takes the steps for what SQLite has worked, and for the rows that it gave.
func (s *session) chargeWork(rows int) {
	steps := int64(rows) * broker.EntrySteps
	if s.db != nil {
		steps += s.db.TakeWork().Microseconds() * broker.MicrosecondSteps
	}
	s.call.Charge(steps)
}

// told is what a guest may know of why a database could not be opened.
func told(err error) *abi.Error {
	var fault *database.Fault
	if errors.As(err, &fault) {
		return fault.Told
	}
	return invalid(err)
}

// Close undoes an open transaction and gives the database back.
func (s *session) Close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.broker.leave(s.tenant)
	return err
}

// Observation is what is known of one statement, or of the beginning or end of a transaction, when it is over, for metrics.
type Observation struct {
	// Function is that of hako:sql/1: "query", "exec", "begin", "commit" or "rollback".
	Function string
	// Code is the code of the *abi.Error that the guest got; empty if none.
	Code     string
	Duration time.Duration
	// TraceID is the trace that the statement belongs to; empty if none.
	TraceID string
}

// observed runs do, which is one function of the guest's, and tells the observer and the log how it went.
func (s *session) observed(ctx context.Context, function string, do func() *abi.Error) *abi.Error {
	_, span := trace.Start(ctx, "sql "+function, trace.Client)
	defer span.End()
	start := time.Now()
	err := do()
	o := Observation{Function: function, Duration: time.Since(start), TraceID: trace.ID(ctx)}
	if err != nil {
		o.Code = err.Code
	}
	span.Text(trace.DatabaseSystem, "sqlite")
	span.Text(trace.DatabaseOperation, function)
	span.Fail(o.Code)
	if s.broker.observe != nil {
		s.broker.observe(o)
	}
	s.broker.log.LogAttrs(ctx, slog.LevelDebug, "sql", slog.String("plugin", s.call.Plugin), slog.String("tool", s.call.Tool),
		slog.String("function", function), slog.String("code", o.Code), slog.Duration("duration", o.Duration))
	return err
}
