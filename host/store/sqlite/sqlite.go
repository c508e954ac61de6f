// Package sqlite is the embedded database of a store: a directory with one SQLite file. Locks are locks of files.
package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"

	"github.com/hako-run/hako/host/store"
)

// database is the name of the file in the directory.
const database = "hako.db"

const (
	// lockPoll is the polling interval of Lock.
	lockPoll = 20 * time.Millisecond
	// changePoll is the polling interval for changes.
	changePoll = 200 * time.Millisecond
	// connections is the number of connections for transactions.
	connections = 4
	// busyTime is the time that a transaction waits for others. It is long because several processes may start at once
	// on a slow disk.
	busyTime = 30 * time.Second
)

// engine is the embedded database.
type engine struct {
	dir string
	db  *sql.DB
}

var _ store.Engine = (*engine)(nil)

// Open opens the store in a directory, which is created for this user only if it is missing. The caller closes it.
//
// The error matches store.ErrReadOnly, ErrCorrupt, ErrFull or ErrLocked if that is the cause.
func Open(ctx context.Context, dir string) (*store.Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	e, err := open(dir, busyTime)
	if err != nil {
		return nil, err
	}
	return store.New(ctx, e, &store.Options{Dir: dir})
}

// open opens the database in a directory. Its transactions wait for others for up to busy.
func open(dir string, busy time.Duration) (*engine, error) {
	e := &engine{dir: dir}
	var err error
	if e.db, err = sql.Open("sqlite3", source(e.Name(), busy)); err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	e.db.SetMaxOpenConns(connections + 1) // one of them polls for changes
	return e, nil
}

func (e *engine) Connections() int { return connections }

func (e *engine) Shared() bool { return false }

// makeDir creates the directory with a .gitignore for its content.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

// source returns the data source name. Committed transactions are flushed to the disk, and writing transactions acquire
// the write lock at their start, so that they cannot fail for it later.
func source(path string, timeout time.Duration) string {
	query := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", timeout.Milliseconds()), "journal_mode(WAL)",
			"synchronous(FULL)", "fullfsync(1)",
			"foreign_keys(1)", "trusted_schema(0)",
		},
		"_txlock": {"immediate"},
	}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + query.Encode()
}

func (e *engine) Name() string { return filepath.Join(e.dir, database) }

func (e *engine) Begin(ctx context.Context, write bool) (*sql.Tx, error) {
	return e.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: !write})
}

func (e *engine) Migrate(ctx context.Context, f func(*sql.Tx) error) error {
	return e.InTurn(ctx, "", f)
}

func (e *engine) InTurn(ctx context.Context, _ string, f func(*sql.Tx) error) error {
	tx, err := e.Begin(ctx, true)
	if err != nil {
		return err
	}
	return store.Commit(tx, f)
}

func (e *engine) IsConflict(error) bool { return false } // SQLite has already waited

func (e *engine) LostBeforeCommit(error) bool { return false }

func (e *engine) Close() error { return e.db.Close() }

func (e *engine) Now(context.Context, *sql.Tx) (time.Time, error) { return time.Now(), nil }

// Lock acquires a file lock of the kernel.
func (e *engine) Lock(ctx context.Context, name string) (context.Context, func(), error) {
	dir := filepath.Join(e.dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("store %s: %w", e.dir, err)
	}
	sum := sha256.Sum256([]byte(name)) // the name may be any text
	lock := flock.New(filepath.Join(dir, hex.EncodeToString(sum[:16])), flock.SetPermissions(0o600))
	free, err := lock.TryLock() // one attempt even if ctx has ended
	if err == nil && !free {
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", store.ErrLocked, err)
		}
		return nil, nil, errors.Join(fmt.Errorf("store %s: lock %q: %w", e.dir, name, err), lock.Close())
	}
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	return held, func() {
		end()
		_ = lock.Close() // the kernel releases the lock in any case
	}, nil
}

// Announce does nothing: each change of the database counts for all topics.
func (e *engine) Announce(context.Context, *sql.Tx, string) error { return nil }

// Listen polls for changes by other connections (sqlite.org/pragma.html, data_version).
func (e *engine) Listen(ctx context.Context, notify func(topic string)) {
	var conn *sql.Conn
	var seen int64
	for {
		version, err := e.version(ctx, &conn)
		switch {
		case err != nil && conn != nil: // the versions of a new connection are not comparable
			_ = conn.Close()
			conn, seen = nil, 0
		case err == nil && version != seen:
			seen = version
			notify("")
		}
		select {
		case <-time.After(changePoll):
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close()
			}
			return
		}
	}
}

// version returns a number that changes when other connections change the database. It opens *conn if that is nil.
func (e *engine) version(ctx context.Context, conn **sql.Conn) (version int64, err error) {
	if *conn == nil {
		if *conn, err = e.db.Conn(ctx); err != nil {
			return 0, err
		}
	}
	err = (*conn).QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return version, err
}

// causes maps SQLite's primary result codes (sqlite.org/rescode.html) to the causes of errors.go.
var causes = map[sqlite3.ErrorCode]error{
	sqlite3.FULL:     store.ErrFull,
	sqlite3.BUSY:     store.ErrLocked,
	sqlite3.LOCKED:   store.ErrLocked,
	sqlite3.READONLY: store.ErrReadOnly,
	sqlite3.CANTOPEN: store.ErrReadOnly,
	sqlite3.CORRUPT:  store.ErrCorrupt,
	sqlite3.NOTADB:   store.ErrCorrupt,
}

// Explain adds cause and remedy to an error of SQLite. Other errors, such as those of a transaction's function, stay as
// they are.
func (e *engine) Explain(err error) error {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return err
	}
	cause := causes[sqlite3.ErrorCode(code)]
	if code == sqlite3.IOERR_WRITE {
		cause = store.ErrFull // an I/O error may also mean a disk quota or a limit on file sizes
	}
	if cause == nil {
		return fmt.Errorf("store %s: %w", e.Name(), err)
	}
	return fmt.Errorf("store %s: %w (%w): %s", e.Name(), cause, err, remedies[cause])
}

// remedies are the remedies for causes.
var remedies = map[error]string{
	store.ErrFull:     "free some space and try again; nothing was changed",
	store.ErrLocked:   "try again; if that does not help, check which process has it open",
	store.ErrReadOnly: "give this user write permission, or name another directory with store",
	store.ErrCorrupt:  "restore it from a backup, or move it away to start with an empty one",
}
