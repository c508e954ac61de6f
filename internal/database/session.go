package database

import (
	"context"
	"errors"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// Session is one call's side of a database: its statements, and the transaction it may have open. It belongs to one goroutine at a
// time.
type Session struct {
	db    *DB
	fault func(*Fault)
	// tx is the open transaction's connection; nil: none is open.
	tx *conn
	// work is how long SQLite has worked for the session since TakeWork was called.
	work time.Duration
	// lost is why the open transaction has been undone; nil: it has not.
	lost *abi.Error
}

// Session starts one. The caller closes it. fault is told of what fails in the host, in words for the operator; the plugin gets an
// error with abi.CodeInternal for it. Nil tells nobody.
func (db *DB) Session(fault func(*Fault)) *Session {
	if fault == nil {
		fault = func(*Fault) {}
	}
	return &Session{db: db, fault: fault}
}

// Query runs one statement and returns its columns and rows, at most MaxRows and MaxBytes of them, or why not.
func (s *Session) Query(ctx context.Context, statement *abi.SQLStatement) *abi.SQLResult {
	return s.execute(ctx, statement, true)
}

// Exec runs one statement and returns what it changed, or why not. Rows that it gives are dropped.
func (s *Session) Exec(ctx context.Context, statement *abi.SQLStatement) *abi.SQLResult {
	return s.execute(ctx, statement, false)
}

func (s *Session) execute(ctx context.Context, statement *abi.SQLStatement, rows bool) *abi.SQLResult {
	run := s.alone
	if s.tx != nil || s.lost != nil {
		run = s.within
	}
	result, err := run(ctx, statement, rows)
	if err != nil {
		return &abi.SQLResult{Error: err}
	}
	return result
}

// alone runs a statement outside of a transaction. A query may turn out to write: then it waits for its turn first, without keeping a
// connection from those who read.
func (s *Session) alone(ctx context.Context, statement *abi.SQLStatement, rows bool) (*abi.SQLResult, *abi.Error) {
	result, explained, err := s.attempt(ctx, statement, rows, !rows)
	if errors.Is(err, errMustWrite) || errors.Is(err, errLog) {
		result, explained, _ = s.attempt(ctx, statement, rows, true)
	}
	return result, explained
}

// attempt runs a statement on a connection of its own. err is why another attempt may do better.
func (s *Session) attempt(ctx context.Context, statement *abi.SQLStatement, rows, write bool) (_ *abi.SQLResult, _ *abi.Error, err error) {
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
	return nil, explained, c.files.full
}

// within runs a statement in the open transaction.
func (s *Session) within(ctx context.Context, statement *abi.SQLStatement, rows bool) (*abi.SQLResult, *abi.Error) {
	if s.lost != nil {
		return nil, s.undone()
	}
	result, err := s.tx.statement(ctx, statement, rows)
	s.work += s.tx.takeWork()
	if errors.Is(err, errMustWrite) {
		return nil, failf(abi.CodeInvalid, "the transaction only reads: begin one that may write")
	}
	explained := s.explain(ctx, s.tx, err, statement.SQL)
	if explained != nil && s.tx.over() {
		s.lost = explained
		s.end()
	}
	return result, explained
}

func (s *Session) undone() *abi.Error {
	return failf(s.lost.Code, "the transaction has been undone already, because of this: %s", s.lost.Message)
}

// end gives the transaction's connection back, which undoes what is not committed.
func (s *Session) end() {
	s.work += s.tx.takeWork()
	s.db.release(s.tx)
	s.tx = nil
}

// Begin starts a transaction. One that writes waits until nobody else does; one that reads sees the database as it is at its first
// statement.
func (s *Session) Begin(ctx context.Context, write bool) *abi.Error {
	if s.tx != nil || s.lost != nil {
		return failf(abi.CodeInvalid, "a transaction is open already: end it first")
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
	if explained := s.explain(ctx, c, c.host(ctx, sql), ""); explained != nil {
		s.end()
		return explained
	}
	return nil
}

// Commit ends the transaction and keeps what it did; with an error nothing is kept, except that nobody knows if the call's time ends in
// the midst of it.
func (s *Session) Commit(ctx context.Context) *abi.Error {
	if s.lost != nil {
		err := s.undone()
		s.lost = nil
		return err
	}
	if s.tx == nil {
		return failf(abi.CodeInvalid, "no transaction is open")
	}
	defer s.end()
	return s.explain(ctx, s.tx, s.tx.host(ctx, "COMMIT"), "")
}

// Rollback ends the transaction and undoes what it did.
func (s *Session) Rollback(context.Context) *abi.Error {
	switch {
	case s.lost != nil:
		s.lost = nil
	case s.tx == nil:
		return failf(abi.CodeInvalid, "no transaction is open")
	default:
		s.end()
	}
	return nil
}

// TakeWork returns how long SQLite has worked for the session since it was called last. Waiting for others does not count.
func (s *Session) TakeWork() time.Duration {
	work := s.work
	s.work = 0
	return work
}

// Close ends the session. An open transaction is undone.
func (s *Session) Close() error {
	s.lost = nil
	if s.tx != nil {
		s.end()
	}
	return nil
}
