// Package store holds the host's persistent state, such as credentials and consents.
//
// A Store is a directory with an embedded SQLite database, or a PostgreSQL database that several replicas share. The
// databases are in packages sqlite and postgres; only package drivers and host/app link them. Consumers use both in the same way: they declare their tables with Migrate, run transactions of
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
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// Store is an open store. It is safe for concurrent use. Several processes may open the same directory or database.
type Store struct {
	engine   Engine
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

// Options configures New. A nil *Options means all defaults.
type Options struct {
	// Dir is the result of [Store.Dir].
	Dir string
	// Replica is the ID of this process. Empty means that of NewReplica.
	Replica string
	// ReadOnly means that the database must not be changed. Migrate fails with ErrUnprepared instead of creating tables.
	ReadOnly bool
}

// New returns a Store over an engine, which its Close closes. It creates the store's own tables if they are missing.
// Package drivers opens a store by its location. Errors are those of Update; the engine is closed then.
func New(ctx context.Context, e Engine, options *Options) (*Store, error) {
	o := Options{}
	if options != nil {
		o = *options
	}
	if o.Replica == "" {
		o.Replica = NewReplica()
	}
	s := &Store{engine: e, dir: o.Dir, replica: o.Replica, readOnly: o.ReadOnly}
	s.ending, s.end = context.WithCancel(context.Background())
	err := s.prepare(ctx)
	if err == nil {
		err = s.followClock(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// NewReplica returns a random ID of a process: 16 hexadecimal digits.
func NewReplica() string {
	var id [8]byte
	_, _ = crand.Read(id[:]) // cannot fail
	return hex.EncodeToString(id[:])
}

// Engine returns the engine below the store, for packages that know its type.
func (s *Store) Engine() Engine { return s.engine }

// ReadOnly reports whether the store was opened for reading alone.
func (s *Store) ReadOnly() bool { return s.readOnly }

// Dir returns the store's directory for data beside the database. With PostgreSQL it is local to this machine, may be
// empty after every start, and is not created by the store.
func (s *Store) Dir() string { return s.dir }

// Shared reports whether processes on other machines may use the store too. Then Dir must not hold persistent data, nor
// data that they need.
func (s *Store) Shared() bool { return s.engine.Shared() }

// Connections returns the maximum number of concurrent transactions. Further ones wait.
func (s *Store) Connections() int { return s.engine.Connections() }

// Where returns the store's name for messages: its directory, or the URL without password and parameters.
func (s *Store) Where() string { return s.engine.Name() }

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
		case s.engine.LostBeforeCommit(err) && !lost:
			lost = true
		case s.engine.IsConflict(err) && time.Since(start) < retryTime:
			if err := pause(ctx, attempt); err != nil {
				return err
			}
		default:
			return s.engine.Explain(err)
		}
	}
}

// UpdateInTurn is Update for transactions that would always conflict, such as appending to one list. Transactions with
// the same name run one at a time, over all processes, and without retries after conflicts. Each sees the writes of the
// ones before it. With PostgreSQL it waits for its turn for at most StatementTimeout, and is isolated from other
// transactions only as READ COMMITTED: data that it changes must be changed only under that name.
func (s *Store) UpdateInTurn(ctx context.Context, name string, f func(*sql.Tx) error) error {
	err := s.engine.InTurn(ctx, name, f)
	if err != nil && ctx.Err() == nil && s.engine.LostBeforeCommit(err) {
		err = s.engine.InTurn(ctx, name, f)
	}
	return s.engine.Explain(err)
}

// pause waits before a retry, for a random time of up to 2 ms at first and up to 128 ms later.
func pause(ctx context.Context, attempt int) error {
	return retry.Wait(ctx, rand.N(time.Millisecond<<min(attempt, 7)))
}

// View runs f in a read-only transaction that sees one state of the store. f runs again once if the connection was
// lost. Errors are those of Update.
func (s *Store) View(ctx context.Context, f func(*sql.Tx) error) error {
	err := s.transact(ctx, false, f)
	if err != nil && ctx.Err() == nil && s.engine.LostBeforeCommit(err) {
		err = s.transact(ctx, false, f)
	}
	return s.engine.Explain(err)
}

func (s *Store) transact(ctx context.Context, write bool, f func(*sql.Tx) error) error {
	tx, err := s.engine.Begin(ctx, write)
	if err != nil {
		return err
	}
	if write {
		return Commit(tx, f)
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	return f(tx)
}

// Lock acquires the lock with a name, which may be any text, among all processes that use the store. It waits until ctx
// ends; then the error matches ErrLocked and that of ctx. It makes at least one attempt. Locks are independent of
// transactions and are not reentrant.
//
// The lock is held until release is called, which may be done twice, or the process ends. With PostgreSQL it is lost
// with its connection. This replica detects that within 10 seconds; others can acquire the lock after 25 seconds. The
// context held has ctx's values, but not its cancellation. It ends when the lock is released or lost, in the latter
// case with the cause ErrLockLost. Run exclusive work under held.
func (s *Store) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	return s.engine.Lock(ctx, name)
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
	return s.engine.Close()
}
