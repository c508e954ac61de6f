// Package store keeps the host's own state: credentials and what else must outlive the process.
//
// A Store is a directory with an embedded SQLite database, or a PostgreSQL database that several replicas of the host share. Its
// consumers see no difference: they write SQL that both understand (TEXT, BIGINT, DOUBLE PRECISION and BYTEA columns, parameters $1, $2,
// ON CONFLICT, RETURNING) against the transactions of database/sql, name their migrations, take locks by name, and hear of changes.
package store

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a Store over PostgreSQL; one in a directory needs none. A nil *Options means all defaults.
type Options struct {
	// Dir is a directory of this machine for what may be lost. Empty means a directory "store" in the user's cache directory.
	Dir string
	// Password returns the password, for each new connection. Nil means the one in the URL, PGPASSWORD or the password file.
	Password func(context.Context) (string, error)
	// Connections is the most connections for transactions, at least 2. Zero means 10. A store has two more: for its locks, and for changes.
	Connections int
	// StatementTimeout bounds each statement. A server that does not answer at all is given up 3 seconds later. Zero means 10 s.
	StatementTimeout time.Duration
	// Logger receives the loss of connections. Nil discards it.
	Logger *slog.Logger
}

// Store is the host's state. It is safe for concurrent use, also by several processes over one directory or database.
type Store struct {
	engine
	dir     string
	replica string

	// ending ends when Close is called; working counts what Close waits for.
	ending  context.Context
	end     context.CancelFunc
	working sync.WaitGroup

	joined atomic.Bool // into the list of replicas
	clock  clock
	bells  bells
}

// engine is one of the databases.
type engine interface {
	// begin starts a transaction that reads only, or one that writes.
	begin(ctx context.Context, write bool) (*sql.Tx, error)
	// inTurn runs f in a transaction that none of that name runs beside.
	inTurn(ctx context.Context, name string, f func(*sql.Tx) error) error
	// migrate runs f in a transaction that no other migration runs beside.
	migrate(ctx context.Context, f func(*sql.Tx) error) error
	// again reports whether a transaction that failed so may be run once more: it met another one, and was undone.
	again(err error) bool
	// lost reports whether the connection of a transaction was lost before its end, so that nothing of it is there.
	lost(err error) bool
	// explain names the store, the cause and the remedy of an error that is the database's.
	explain(err error) error
	// lock is Lock.
	lock(ctx context.Context, name string) (context.Context, func(), error)
	// listen calls ring for each topic that is announced, and for "", which is all of them, where it may have missed some, until ctx ends.
	listen(ctx context.Context, ring func(topic string))
	// announce is Announce.
	announce(ctx context.Context, tx *sql.Tx, topic string) error
	// now is the time in a transaction, as all replicas have it.
	now(ctx context.Context, tx *sql.Tx) (time.Time, error)
	// connections is Connections.
	connections() int
	// name is what errors call the store.
	name() string
	close() error
}

// IsURL reports whether where, as Open takes it, is the URL of a PostgreSQL database.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// Open opens the store at where with default options: the URL of a PostgreSQL database (see OpenWith), or a directory, which is made, for
// this user alone, if it is missing. The caller closes it.
//
// The error matches ErrReadOnly, ErrCorrupt, ErrFull, ErrLocked, ErrUnreachable or ErrPooled where that is the cause.
func Open(ctx context.Context, where string) (*Store, error) { return OpenWith(ctx, where, nil) }

// OpenWith is Open with options. A URL has the form of libpq (PostgreSQL's documentation, section 34.1.1.2), and what it leaves out is
// taken from libpq's environment variables: postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE. Errors never show
// the password.
func OpenWith(ctx context.Context, where string, options *Options) (*Store, error) {
	o := options.withDefaults()
	s := &Store{replica: newReplica()}
	s.ending, s.end = context.WithCancel(context.Background())
	var err error
	if IsURL(where) {
		s.dir = o.Dir
		s.engine, err = openPostgres(ctx, where, s.replica, o)
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
	_, _ = crand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Dir is the store's directory, for what lies beside the database. Over PostgreSQL it is this machine's alone, and may be empty after
// every start; it is not made before somebody does.
func (s *Store) Dir() string { return s.dir }

// Shared reports whether the store is one that processes of other machines use too: then nothing that must last, and nothing that they
// need, lies in Dir.
func (s *Store) Shared() bool {
	_, shared := s.engine.(*postgres)
	return shared
}

// Connections is how many transactions there can be at once; more wait.
func (s *Store) Connections() int { return s.connections() }

// Where names the store for messages: its directory, or the URL without password and parameters.
func (s *Store) Where() string { return s.name() }

// patience is how long a transaction over PostgreSQL is run again because of others.
const patience = 5 * time.Second

// Update runs f in a transaction that may write. When it returns nil, what f wrote is on the disk; with an error nothing has
// changed, except that nobody knows if the connection to PostgreSQL is lost, or ctx ends, in the midst of the end. Transactions have the
// effect of running one after the other.
//
// Over PostgreSQL f runs again, for up to 5 seconds, if its transaction met another one, and once if the connection was lost: f changes
// nothing but the transaction and variables that it sets anew. In a directory, f waits 30 seconds for other processes, and runs once.
//
// The error is f's, ctx's, or matches ErrFull, ErrLocked, ErrReadOnly, ErrCorrupt or ErrUnreachable where that is the cause.
func (s *Store) Update(ctx context.Context, f func(*sql.Tx) error) error {
	start, lost := time.Now(), false
	for attempt := 1; ; attempt++ {
		err := s.transact(ctx, true, f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return err
		case s.lost(err) && !lost:
			lost = true
		case s.again(err) && time.Since(start) < patience:
			if err := pause(ctx, attempt); err != nil {
				return err
			}
		default:
			return s.explain(err)
		}
	}
}

// UpdateInTurn is Update for transactions that would always meet, such as those that each add to the end of one list: of those with one name
// only one runs at a time, over all processes, and none is run again for having met another. It sees all that those before it have written.
// Over PostgreSQL it waits for its turn as long as a statement may take, and it is not kept apart from other transactions (it is READ
// COMMITTED): what it changes is changed only under that name.
func (s *Store) UpdateInTurn(ctx context.Context, name string, f func(*sql.Tx) error) error {
	err := s.inTurn(ctx, name, f)
	if err != nil && ctx.Err() == nil && s.lost(err) {
		err = s.inTurn(ctx, name, f)
	}
	return s.explain(err)
}

// pause keeps transactions that meet from meeting again: it takes up to 2 ms at first and 128 ms later, by chance.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-time.After(rand.N(time.Millisecond << min(attempt, 7))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// View runs f in a transaction that only reads, from one state of the store. It runs again once if the connection was lost. Errors are as
// for Update.
func (s *Store) View(ctx context.Context, f func(*sql.Tx) error) error {
	err := s.transact(ctx, false, f)
	if err != nil && ctx.Err() == nil && s.lost(err) {
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
	defer func() { _ = tx.Rollback() }() // there is nothing to keep
	return f(tx)
}

// finish runs f in the transaction and ends it.
func finish(tx *sql.Tx, f func(*sql.Tx) error) error {
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError is the failure of a transaction's end: if the connection was lost, it may have been kept or not.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// Lock takes the lock of that name, which all processes share that use the store, and waits for it until ctx ends; the error then
// matches ErrLocked and ctx's. One attempt is made in any case. Names are any text. Locks do not depend on transactions, and do not nest.
//
// The lock lasts until release is called, which may be done twice, or the process dies: nothing stale is left. Over PostgreSQL it is lost with the
// connection that holds it, which another replica can see after 25 seconds and this one sees within 10. The context held, which has ctx's
// values but not its end, ends when the lock is released or lost, in the latter case with the cause ErrLockLost: what another process must
// not do at the same time is done under held.
func (s *Store) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	return s.lock(ctx, name)
}

// Close closes the store. Locks that are held are released over PostgreSQL, and stay until they are released in a directory. It may be
// called twice.
func (s *Store) Close() error {
	s.end()
	s.working.Wait()
	s.leave()
	return s.engine.close()
}
