package store

import (
	"context"
	"database/sql"
	"time"
)

// Engine is the database below a Store. Its methods are safe for concurrent use.
type Engine interface {
	// Begin starts a transaction, read-only unless write is set.
	Begin(ctx context.Context, write bool) (*sql.Tx, error)
	// InTurn runs f in a transaction that excludes others with that name.
	InTurn(ctx context.Context, name string, f func(*sql.Tx) error) error
	// Migrate runs f in a transaction that excludes other migrations.
	Migrate(ctx context.Context, f func(*sql.Tx) error) error
	// IsConflict reports whether a transaction failed because of a conflict and may run again.
	IsConflict(err error) bool
	// LostBeforeCommit reports whether the connection was lost before the commit. The transaction was rolled back then.
	LostBeforeCommit(err error) bool
	// Explain adds store, cause (errors.go) and remedy to an error of the database.
	Explain(err error) error
	// Lock implements [Store.Lock].
	Lock(ctx context.Context, name string) (held context.Context, release func(), err error)
	// Listen calls notify for each announced topic until ctx ends. It calls notify with "", for all topics, when it may
	// have missed some.
	Listen(ctx context.Context, notify func(topic string))
	// Announce implements [Store.Announce].
	Announce(ctx context.Context, tx *sql.Tx, topic string) error
	// Now implements [Store.Now].
	Now(ctx context.Context, tx *sql.Tx) (time.Time, error)
	// Connections implements [Store.Connections], Shared [Store.Shared].
	Connections() int
	Shared() bool
	// Name returns the store's name in errors.
	Name() string
	Close() error
}

// Commit runs f in the transaction and commits it, or rolls it back if f fails. The error is that of f, or a
// CommitError. It is meant for implementations of Engine.
func Commit(tx *sql.Tx, f func(*sql.Tx) error) error {
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return &CommitError{err}
	}
	return nil
}

// CommitError is the error of a commit. If the connection was lost, the outcome is unknown.
type CommitError struct{ err error }

func (e *CommitError) Error() string { return e.err.Error() }
func (e *CommitError) Unwrap() error { return e.err }
