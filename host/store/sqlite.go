package store

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
)

// database is the name of the file in the directory.
const database = "hako.db"

const (
	// lockPoll is the polling interval of Lock.
	lockPoll = 20 * time.Millisecond
	// changePoll is the polling interval for changes.
	changePoll = 200 * time.Millisecond
	// sqliteConnections is the number of connections for transactions.
	sqliteConnections = 4
	// busyTime is the time that a transaction waits for others. It is long because several processes may start at once
	// on a slow disk.
	busyTime = 30 * time.Second
)

// sqlite is the embedded database.
type sqlite struct {
	dir string
	db  *sql.DB
}

var _ engine = (*sqlite)(nil)

func openSQLite(dir string) (*sqlite, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	e := &sqlite{dir: dir}
	var err error
	if e.db, err = sql.Open("sqlite3", source(e.name(), busyTime)); err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	e.db.SetMaxOpenConns(sqliteConnections + 1) // one of them polls for changes
	return e, nil
}

func (e *sqlite) connections() int { return sqliteConnections }

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

func (e *sqlite) name() string { return filepath.Join(e.dir, database) }

func (e *sqlite) begin(ctx context.Context, write bool) (*sql.Tx, error) {
	return e.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: !write})
}

func (e *sqlite) migrate(ctx context.Context, f func(*sql.Tx) error) error {
	return e.inTurn(ctx, "", f)
}

func (e *sqlite) inTurn(ctx context.Context, _ string, f func(*sql.Tx) error) error {
	tx, err := e.begin(ctx, true)
	if err != nil {
		return err
	}
	return finish(tx, f)
}

func (e *sqlite) isConflict(error) bool { return false } // SQLite has already waited

func (e *sqlite) lostBeforeCommit(error) bool { return false }

func (e *sqlite) close() error { return e.db.Close() }

func (e *sqlite) now(context.Context, *sql.Tx) (time.Time, error) { return time.Now(), nil }

// lock acquires a file lock of the kernel.
func (e *sqlite) lock(ctx context.Context, name string) (context.Context, func(), error) {
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
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return nil, nil, errors.Join(fmt.Errorf("store %s: lock %q: %w", e.dir, name, err), lock.Close())
	}
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	return held, func() {
		end()
		_ = lock.Close() // the kernel releases the lock in any case
	}, nil
}

// announce does nothing: each change of the database counts for all topics.
func (e *sqlite) announce(context.Context, *sql.Tx, string) error { return nil }

// listen polls for changes by other connections (sqlite.org/pragma.html, data_version).
func (e *sqlite) listen(ctx context.Context, notify func(topic string)) {
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
func (e *sqlite) version(ctx context.Context, conn **sql.Conn) (version int64, err error) {
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
	sqlite3.FULL:     ErrFull,
	sqlite3.BUSY:     ErrLocked,
	sqlite3.LOCKED:   ErrLocked,
	sqlite3.READONLY: ErrReadOnly,
	sqlite3.CANTOPEN: ErrReadOnly,
	sqlite3.CORRUPT:  ErrCorrupt,
	sqlite3.NOTADB:   ErrCorrupt,
}

// explain adds cause and remedy to an error of SQLite. Other errors, such as those of a transaction's function, stay as
// they are.
func (e *sqlite) explain(err error) error {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return err
	}
	cause := causes[sqlite3.ErrorCode(code)]
	if code == sqlite3.IOERR_WRITE {
		cause = ErrFull // an I/O error may also mean a disk quota or a limit on file sizes
	}
	if cause == nil {
		return fmt.Errorf("store %s: %w", e.name(), err)
	}
	return fmt.Errorf("store %s: %w (%w): %s", e.name(), cause, err, remedies[cause])
}
