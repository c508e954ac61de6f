// Package store keeps the host's own state: credentials and what else must outlive the process.
//
// A Store is a directory with an embedded SQLite database. What its consumers see is meant to hold for PostgreSQL too, where
// several replicas share one: they write SQL that both understand (TEXT, BIGINT and DOUBLE PRECISION columns, parameters $1, $2,
// ON CONFLICT, RETURNING) against the transactions of database/sql, name their migrations, and take locks by name.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
)

// database is the file inside the directory.
const database = "hako.db"

// busyTimeout is how long a transaction waits for one of another process.
const busyTimeout = 5 * time.Second

// Store is the host's state. It is safe for concurrent use, also by several processes over one directory.
type Store struct {
	dir string
	db  *sql.DB
}

// Open opens the store in the directory dir, which is made, for this user alone, if it is missing. The caller closes it.
//
// The error matches ErrReadOnly, ErrCorrupt, ErrFull or ErrLocked where that is the cause.
func Open(ctx context.Context, dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{dir: dir}
	if s.db, err = sql.Open("sqlite3", source(s.path(), busyTimeout)); err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	s.db.SetMaxOpenConns(4)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// makeDir makes the directory, and keeps git from taking what is in it.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

// source is the driver's name for the database: a transaction is on the disk when it has ended, and a writing one starts as such,
// so that it cannot fail for a lock half-way.
func source(path string, timeout time.Duration) string {
	query := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", timeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)",
			"foreign_keys(1)", "trusted_schema(0)",
		},
		"_txlock": {"immediate"},
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + query.Encode()
}

func (s *Store) path() string { return filepath.Join(s.dir, database) }

// Dir is the store's directory, for what lies beside the database.
func (s *Store) Dir() string { return s.dir }

// Update runs f in a transaction that may write. When it returns nil, what f wrote is on the disk; with an error nothing has
// changed. Transactions of one store happen one after the other; one waits 5 seconds for those of other processes.
//
// The error is f's, ctx's, or matches ErrFull, ErrLocked, ErrReadOnly or ErrCorrupt where that is the cause.
func (s *Store) Update(ctx context.Context, f func(*sql.Tx) error) error {
	return s.transact(ctx, nil, f)
}

// View runs f in a transaction that only reads, from one state of the store. Errors are as for Update.
func (s *Store) View(ctx context.Context, f func(*sql.Tx) error) error {
	return s.transact(ctx, &sql.TxOptions{ReadOnly: true}, f)
}

func (s *Store) transact(ctx context.Context, options *sql.TxOptions, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, options)
	if err != nil {
		return s.explain(err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := f(tx); err != nil {
		return s.explain(err)
	}
	return s.explain(tx.Commit())
}

// Close closes the store. Locks that are held stay until they are released. It may be called twice.
func (s *Store) Close() error { return s.db.Close() }
