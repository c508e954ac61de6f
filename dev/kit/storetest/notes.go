package storetest

import (
	"database/sql"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
)

// Table creates the table of notes.
const Table = "CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"

// Exec runs a statement in a transaction.
func Exec(t testing.TB, s *store.Store, query string, args ...any) error {
	t.Helper()
	return s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), query, args...)
		return err
	})
}

// Count returns the number of notes.
func Count(t testing.TB, s *store.Store) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM note").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// AppendNote counts the notes and inserts one with that number.
func AppendNote(t testing.TB) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM note").Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(t.Context(), "INSERT INTO note VALUES ($1, 'x')", n)
		return err
	}
}

// Receive waits for a notification.
func Receive(t testing.TB, watcher <-chan struct{}) {
	t.Helper()
	select {
	case <-watcher:
	case <-testwait.Context(t).Done():
		t.Fatal("nothing is heard")
	}
}
