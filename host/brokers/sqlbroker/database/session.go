package database

import (
	"context"
	"errors"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// Session runs the statements of one call and holds its open transaction. It belongs to one goroutine at a time.
type Session struct {
	db    *DB
	fault func(*Fault)
	// tx is the connection of the open transaction, or nil.
	tx *conn
	// work is SQLite's computing time since the last TakeWork.
	work time.Duration
	// lost is the error that rolled back the open transaction, or nil.
	lost *abi.Error
}

// Session returns a new session, which the caller closes. It calls fault for failures of the host, for which the plugin
// gets an error with abi.CodeInternal. fault may be nil.
func (db *DB) Session(fault func(*Fault)) *Session {
	if fault == nil {
		fault = func(*Fault) {}
	}
	return &Session{db: db, fault: fault}
}

// Query runs one statement and returns its columns and rows, at most MaxRows and MaxBytes, or an error.
func (s *Session) Query(ctx context.Context, statement *abi.SQLStatement) *abi.SQLResult {
	return s.execute(ctx, statement, true)
}

// Exec runs one statement and returns the number of changes, or an error. It drops rows.
func (s *Session) Exec(ctx context.Context, statement *abi.SQLStatement) *abi.SQLResult {
	return s.execute(ctx, statement, false)
}

func (s *Session) execute(ctx context.Context, statement *abi.SQLStatement, rows bool) *abi.SQLResult {
	run := s.runAlone
	if s.tx != nil || s.lost != nil {
		run = s.runInTransaction
	}
	result, err := run(ctx, statement, rows)
	if err != nil {
		return &abi.SQLResult{Error: err}
	}
	return result
}

// runAlone runs a statement outside of a transaction. If a query turns out to write, it waits for the right to write,
// without a connection that readers could use.
func (s *Session) runAlone(ctx context.Context, statement *abi.SQLStatement, rows bool) (*abi.SQLResult, *abi.Error) {
	result, explained, err := s.attempt(ctx, statement, rows, !rows)
	if errors.Is(err, errMustWrite) || errors.Is(err, errLog) {
		result, explained, _ = s.attempt(ctx, statement, rows, true)
	}
	return result, explained
}

// attempt runs a statement on a connection from the pool. A non-nil err means that another attempt may succeed.
func (s *Session) attempt(ctx context.Context, statement *abi.SQLStatement, rows, write bool) (_ *abi.SQLResult,
	_ *abi.Error, err error) {
	c, err := s.db.acquire(ctx, write)
	if err != nil {
		return nil, s.explain(ctx, nil, err, ""), nil
	}
	defer s.db.release(c)
	c.takeWork() // for others
	result, err := c.statement(ctx, statement, rows)
	s.work += c.takeWork()
	if errors.Is(err, errMustWrite) {
		return nil, nil, err
	}
	explained := s.explain(ctx, c, err, statement.SQL)
	if explained == nil || c.running != nil {
		return result, explained, nil
	}
	return nil, explained, c.files.failure
}

// runInTransaction runs a statement in the open transaction.
func (s *Session) runInTransaction(ctx context.Context, statement *abi.SQLStatement,
	rows bool) (*abi.SQLResult, *abi.Error) {
	if s.lost != nil {
		return nil, s.rolledBackError()
	}
	result, err := s.tx.statement(ctx, statement, rows)
	s.work += s.tx.takeWork()
	if errors.Is(err, errMustWrite) {
		return nil, abi.Errorf(abi.CodeInvalid, "the transaction is read-only: begin one that can write")
	}
	explained := s.explain(ctx, s.tx, err, statement.SQL)
	if explained != nil && s.tx.noTransaction() {
		s.lost = explained
		s.releaseTx()
	}
	return result, explained
}

func (s *Session) rolledBackError() *abi.Error {
	return abi.Errorf(s.lost.Code, "the transaction was already rolled back: %s", s.lost.Message)
}

// releaseTx releases the transaction's connection, which rolls back an uncommitted transaction.
func (s *Session) releaseTx() {
	s.work += s.tx.takeWork()
	s.db.release(s.tx)
	s.tx = nil
}

// Begin starts a transaction. A writing one waits for other writers. A reading one sees the state of the database at
// its first statement.
func (s *Session) Begin(ctx context.Context, write bool) *abi.Error {
	if s.tx != nil || s.lost != nil {
		return abi.Errorf(abi.CodeInvalid, "a transaction is already open: end it first")
	}
	c, err := s.db.acquire(ctx, write)
	if err != nil {
		return s.explain(ctx, nil, err, "")
	}
	sql := "BEGIN"
	if write {
		sql = "BEGIN IMMEDIATE"
	}
	s.tx = c
	c.takeWork() // for others
	if explained := s.explain(ctx, c, c.execTrusted(ctx, sql), ""); explained != nil {
		s.releaseTx()
		return explained
	}
	return nil
}

// Commit commits the transaction. After an error it is rolled back, except that the outcome is unknown if the deadline
// passes during the commit.
func (s *Session) Commit(ctx context.Context) *abi.Error {
	if s.lost != nil {
		err := s.rolledBackError()
		s.lost = nil
		return err
	}
	if s.tx == nil {
		return abi.Errorf(abi.CodeInvalid, "no transaction is open")
	}
	defer s.releaseTx()
	return s.explain(ctx, s.tx, s.tx.execTrusted(ctx, "COMMIT"), "")
}

// Rollback rolls back the transaction.
func (s *Session) Rollback(context.Context) *abi.Error {
	switch {
	case s.lost != nil:
		s.lost = nil
	case s.tx == nil:
		return abi.Errorf(abi.CodeInvalid, "no transaction is open")
	default:
		s.releaseTx()
	}
	return nil
}

// TakeWork returns SQLite's computing time for the session since the last call. Waiting for others does not count.
func (s *Session) TakeWork() time.Duration {
	work := s.work
	s.work = 0
	return work
}

// Close ends the session and rolls back an open transaction.
func (s *Session) Close() error {
	s.lost = nil
	if s.tx != nil {
		s.releaseTx()
	}
	return nil
}
