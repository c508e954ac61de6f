package sqlbroker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/pdk/abi"
)

// session is the state of one guest call.
type session struct {
	broker *Broker
	call   *broker.Call
	tenant *tenant           // nil until the first statement
	db     *database.Session // nil until the first statement
	blobs  []byte            // of the last result, until the guest fetches them
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return &session{broker: b, call: call} })
}

// open returns the database session of the call's tenant.
func (s *session) open(ctx context.Context) (*database.Session, *abi.Error) {
	if s.db != nil {
		return s.db, nil
	}
	t, err := s.broker.acquire(ctx, s.call.Tenant)
	if err != nil {
		return nil, guestError(err)
	}
	s.tenant, s.db = t, t.db.Session(s.broker.logFault)
	return s.db, nil
}

// Query runs a statement for call, as a guest's query does, and returns its rows or an error.
func (b *Broker) Query(ctx context.Context, call *broker.Call, statement *abi.SQLStatement) *abi.SQLResult {
	return b.session(call).statement(ctx, "query", statement, (*database.Session).Query)
}

// Exec runs a statement for call, as a guest's exec does, and returns the number of changes or an error.
func (b *Broker) Exec(ctx context.Context, call *broker.Call, statement *abi.SQLStatement) *abi.SQLResult {
	return b.session(call).statement(ctx, "exec", statement, (*database.Session).Exec)
}

// Begin starts a transaction of call, which its end rolls back.
func (b *Broker) Begin(ctx context.Context, call *broker.Call, write bool) *abi.Error {
	return b.session(call).transaction(ctx, "begin",
		func(s *database.Session) *abi.Error { return s.Begin(ctx, write) })
}

// Commit commits the transaction of call.
func (b *Broker) Commit(ctx context.Context, call *broker.Call) *abi.Error {
	return b.session(call).transaction(ctx, "commit", func(s *database.Session) *abi.Error { return s.Commit(ctx) })
}

// Rollback rolls back the transaction of call.
func (b *Broker) Rollback(ctx context.Context, call *broker.Call) *abi.Error {
	return b.session(call).transaction(ctx, "rollback", func(s *database.Session) *abi.Error { return s.Rollback(ctx) })
}

// statement runs a statement of Go code.
func (s *session) statement(ctx context.Context, function string, statement *abi.SQLStatement,
	run runFunc) *abi.SQLResult {
	size := uint64(len(statement.SQL))
	for _, value := range statement.Args {
		switch v := value.(type) {
		case string:
			size += uint64(len(v))
		case []byte:
			size += uint64(len(v))
		}
	}
	return s.do(ctx, function, size, func() *abi.SQLResult {
		if size > maxRequest {
			return &abi.SQLResult{Error: errTooLarge}
		}
		return s.run(ctx, statement, run)
	})
}

// do charges for a statement of size bytes, runs it with run, and observes it.
func (s *session) do(ctx context.Context, function string, size uint64, run func() *abi.SQLResult) *abi.SQLResult {
	s.call.Charge(broker.StatementSteps + int64(size)*fuel.TextSteps)
	var result *abi.SQLResult
	s.observed(ctx, function, func() *abi.Error {
		result = run()
		return result.Error
	})
	s.chargeWork(len(result.Rows))
	return result
}

func (s *session) run(ctx context.Context, statement *abi.SQLStatement, run runFunc) *abi.SQLResult {
	open, failure := s.open(ctx)
	if failure != nil {
		return &abi.SQLResult{Error: failure}
	}
	return run(open, ctx, statement)
}

// transaction begins or ends a transaction.
func (s *session) transaction(ctx context.Context, function string,
	do func(*database.Session) *abi.Error) *abi.Error {
	s.call.Charge(broker.StatementSteps)
	err := s.observed(ctx, function, func() *abi.Error {
		open, failure := s.open(ctx)
		if failure != nil {
			return failure
		}
		return do(open)
	})
	s.chargeWork(0)
	return err
}

// chargeWork charges steps for SQLite's computing time and for the returned rows.
func (s *session) chargeWork(rows int) {
	steps := int64(rows) * broker.EntrySteps
	if s.db != nil {
		steps += s.db.TakeWork().Microseconds() * broker.MicrosecondSteps
	}
	s.call.Charge(steps)
}

// guestError returns the part of an error that a guest may know.
func guestError(err error) *abi.Error {
	var fault *database.Fault
	if errors.As(err, &fault) {
		return fault.Public
	}
	return invalid(err)
}

// Private implements broker.Private.
func (*session) Private() {}

// Close rolls back an open transaction and releases the database.
func (s *session) Close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.broker.release(s.tenant)
	return err
}

// Observation describes a finished statement, or the begin or end of a transaction, for metrics.
type Observation struct {
	// Function is the function of hako:sql/1: "query", "exec", "begin", "commit" or "rollback".
	Function string
	// Code is the code of the *abi.Error for the guest; empty if there is none.
	Code     string
	Duration time.Duration
	// TraceID is the trace of the statement; empty if there is none.
	TraceID string
}

// observed runs do, one function call of the guest, and reports the result to the observer and the log.
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
	s.broker.log.LogAttrs(ctx, slog.LevelDebug, "sql", slog.String("plugin", s.call.Plugin),
		slog.String("tool", s.call.Tool),
		slog.String("function", function), slog.String("code", o.Code), slog.Duration("duration", o.Duration))
	return err
}
