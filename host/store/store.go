// Package store holds the host's persistent state, such as credentials and consents.
//
// A Store is a directory with an embedded SQLite database, or a PostgreSQL database that several replicas share. Open
// opens one. Consumers use both in the same way: they declare their tables with Migrate, run transactions of
// database/sql with Update and View, acquire named locks with Lock, and receive change notifications with Changes.
// Their SQL must be valid for both (TEXT, BIGINT, DOUBLE PRECISION and BYTEA columns, parameters $1, $2, ON CONFLICT,
// RETURNING).
package store

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// Options configures a PostgreSQL Store; a directory ignores them. A nil *Options means all defaults.
type Options struct {
	// Dir is a local directory for data that may be lost. Empty means the directory "store" in the user's cache
	// directory.
	Dir string
	// Password returns the password for each new connection. Nil means the password in the URL, PGPASSWORD or the
	// password file.
	Password func(context.Context) (string, error)
	// Connections is the maximum number of connections for transactions, at least 2. Zero means 10. A store uses two
	// more, for locks and for notifications.
	Connections int
	// StatementTimeout is the timeout of each statement. A connection to a server that does not answer at all fails 3
	// seconds later. Zero means 10 s.
	StatementTimeout time.Duration
	// Logger receives warnings about lost connections. Nil discards them.
	Logger *slog.Logger
	// ReadOnly opens a database without changing it. Migrate fails with ErrUnprepared instead of creating tables. A
	// directory cannot be opened so.
	ReadOnly bool
}

// Store is an open store. It is safe for concurrent use. Several processes may open the same directory or database.
type Store struct {
	engine
	dir      string
	replica  string
	readOnly bool
	// unprepared reports whether a store opened with ReadOnly lacks the store's own tables.
	unprepared bool

	// ending ends with Close; working counts the goroutines that Close waits for.
	ending  context.Context
	end     context.CancelFunc
	working sync.WaitGroup

	joined   atomic.Bool // whether Join was called
	clock    clock
	watchers watchers
}

// engine is a kind of database.
type engine interface {
	// begin starts a transaction, read-only unless write is set.
	begin(ctx context.Context, write bool) (*sql.Tx, error)
	// inTurn runs f in a transaction that excludes others with that name.
	inTurn(ctx context.Context, name string, f func(*sql.Tx) error) error
	// migrate runs f in a transaction that excludes other migrations.
	migrate(ctx context.Context, f func(*sql.Tx) error) error
	// isConflict reports whether a transaction failed because of a conflict and may run again.
	isConflict(err error) bool
	// lostBeforeCommit reports whether the connection was lost before the commit. The transaction was rolled back then.
	lostBeforeCommit(err error) bool
	// explain adds store, cause and remedy to an error of the database.
	explain(err error) error
	// lock implements Lock.
	lock(ctx context.Context, name string) (context.Context, func(), error)
	// listen calls notify for each announced topic until ctx ends. It calls notify with "", for all topics, when it may
	// have missed some.
	listen(ctx context.Context, notify func(topic string))
	// announce implements Announce.
	announce(ctx context.Context, tx *sql.Tx, topic string) error
	// now implements Now.
	now(ctx context.Context, tx *sql.Tx) (time.Time, error)
	// connections implements Connections.
	connections() int
	// name returns the store's name in errors.
	name() string
	close() error
}

// IsURL reports whether where, an argument of Open, is the URL of a PostgreSQL database.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// ReadOnly reports whether the store was opened with Options.ReadOnly.
func (s *Store) ReadOnly() bool { return s.readOnly }

// Open opens the store at where with default options. where is the URL of a PostgreSQL database (see OpenWith), or a
// directory. A missing directory is created for this user only. The caller closes the Store.
//
// The error matches ErrReadOnly, ErrCorrupt, ErrFull, ErrLocked, ErrUnreachable or errPooled if that is the cause.
func Open(ctx context.Context, where string) (*Store, error) { return OpenWith(ctx, where, nil) }

// OpenWith is Open with options. A URL has the form of libpq (PostgreSQL's documentation, section 34.1.1.2). Missing
// parts come from libpq's environment variables:
// postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE. Errors never show the password.
func OpenWith(ctx context.Context, where string, options *Options) (*Store, error) {
	o := options.withDefaults()
	s := &Store{replica: newReplica(), readOnly: o.ReadOnly}
	s.ending, s.end = context.WithCancel(context.Background())
	var err error
	if IsURL(where) {
		s.dir = o.Dir
		s.engine, err = openPostgres(ctx, where, s.replica, o)
	} else if o.ReadOnly {
		err = fmt.Errorf("store %s: a directory cannot be opened without changing it", where)
	} else if s.dir, err = filepath.Abs(where); err == nil {
		s.engine, err = openSQLite(s.dir)
	}
	if err != nil {
		return nil, err
	}
	if err = s.prepare(ctx); err == nil {
		err = s.followClock(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (o *Options) withDefaults() *Options {
	filled := Options{}
	if o != nil {
		filled = *o
	}
	if filled.Dir == "" {
		filled.Dir = cacheDir()
	}
	if filled.Connections == 0 {
		filled.Connections = 10
	}
	filled.Connections = max(filled.Connections, 2)
	if filled.StatementTimeout == 0 {
		filled.StatementTimeout = 10 * time.Second
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return &filled
}

func newReplica() string {
	var id [8]byte
	_, _ = crand.Read(id[:]) // cannot fail
	return hex.EncodeToString(id[:])
}

// Dir returns the store's directory for data beside the database. With PostgreSQL it is local to this machine, may be
// empty after every start, and is not created by the store.
func (s *Store) Dir() string { return s.dir }

// Shared reports whether processes on other machines may use the store too. Then Dir must not hold persistent data, nor
// data that they need.
func (s *Store) Shared() bool {
	_, shared := s.engine.(*postgres)
	return shared
}

// Connections returns the maximum number of concurrent transactions. Further ones wait.
func (s *Store) Connections() int { return s.connections() }

// Where returns the store's name for messages: its directory, or the URL without password and parameters.
func (s *Store) Where() string { return s.name() }

// retryTime is the time for which a PostgreSQL transaction is retried after conflicts.
const retryTime = 5 * time.Second

// Update runs f in a serializable transaction that may write. When it returns nil, the changes are durable. After an
// error nothing has changed, except that the outcome is unknown if the connection to PostgreSQL is lost, or ctx ends,
// during the commit.
//
// With PostgreSQL f runs again for up to 5 seconds after conflicts with other transactions, and once after a lost
// connection. So f must change nothing except through the transaction, and variables that it sets each time. With a
// directory, f runs once, after waiting up to 30 seconds for other processes.
//
// The error is that of f or ctx, or matches ErrFull, ErrLocked, ErrReadOnly, ErrCorrupt or ErrUnreachable if that is
// the cause.
func (s *Store) Update(ctx context.Context, f func(*sql.Tx) error) error {
	start, lost := time.Now(), false
	for attempt := 1; ; attempt++ {
		err := s.transact(ctx, true, f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return err
		case s.lostBeforeCommit(err) && !lost:
			lost = true
		case s.isConflict(err) && time.Since(start) < retryTime:
			if err := pause(ctx, attempt); err != nil {
				return err
			}
		default:
			return s.explain(err)
		}
	}
}

// UpdateInTurn is Update for transactions that would always conflict, such as appending to one list. Transactions with
// the same name run one at a time, over all processes, and without retries after conflicts. Each sees the writes of the
// ones before it. With PostgreSQL it waits for its turn for at most StatementTimeout, and is isolated from other
// transactions only as READ COMMITTED: data that it changes must be changed only under that name.
func (s *Store) UpdateInTurn(ctx context.Context, name string, f func(*sql.Tx) error) error {
	err := s.inTurn(ctx, name, f)
	if err != nil && ctx.Err() == nil && s.lostBeforeCommit(err) {
		err = s.inTurn(ctx, name, f)
	}
	return s.explain(err)
}

// pause waits before a retry, for a random time of up to 2 ms at first and up to 128 ms later.
func pause(ctx context.Context, attempt int) error {
	return retry.Wait(ctx, rand.N(time.Millisecond<<min(attempt, 7)))
}

// View runs f in a read-only transaction that sees one state of the store. f runs again once if the connection was
// lost. Errors are those of Update.
func (s *Store) View(ctx context.Context, f func(*sql.Tx) error) error {
	err := s.transact(ctx, false, f)
	if err != nil && ctx.Err() == nil && s.lostBeforeCommit(err) {
		err = s.transact(ctx, false, f)
	}
	return s.explain(err)
}

func (s *Store) transact(ctx context.Context, write bool, f func(*sql.Tx) error) error {
	tx, err := s.begin(ctx, write)
	if err != nil {
		return err
	}
	if write {
		return finish(tx, f)
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	return f(tx)
}

// finish runs f in the transaction and ends it.
func finish(tx *sql.Tx, f func(*sql.Tx) error) error {
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError is the error of a commit. If the connection was lost, the outcome is unknown.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// Lock acquires the lock with a name, which may be any text, among all processes that use the store. It waits until ctx
// ends; then the error matches ErrLocked and that of ctx. It makes at least one attempt. Locks are independent of
// transactions and are not reentrant.
//
// The lock is held until release is called, which may be done twice, or the process ends. With PostgreSQL it is lost
// with its connection. This replica detects that within 10 seconds; others can acquire the lock after 25 seconds. The
// context held has ctx's values, but not its cancellation. It ends when the lock is released or lost, in the latter
// case with the cause ErrLockLost. Run exclusive work under held.
func (s *Store) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	return s.lock(ctx, name)
}

// deadPatience bounds the attempt of LockDead. A lock that is free is acquired at once, so more of it gains nothing.
const deadPatience = 50 * time.Millisecond

// LockDead acquires the lock of a process, which holds it as long as it lives. release is nil if the process is alive.
// Otherwise it is dead, and until release is called, nobody else takes over what it has left. Errors are those of Lock
// but ErrLocked.
func (s *Store) LockDead(ctx context.Context, name string) (release func(), err error) {
	trying, cancel := context.WithTimeout(ctx, deadPatience)
	defer cancel()
	_, release, err = s.Lock(trying, name)
	if errors.Is(err, ErrLocked) && ctx.Err() == nil {
		return nil, nil
	}
	return release, err
}

// Close closes the store. With PostgreSQL it releases all locks; with a directory they stay until they are released. It
// may be called twice.
func (s *Store) Close() error {
	s.end()
	s.working.Wait()
	s.unregister()
	return s.engine.close()
}
