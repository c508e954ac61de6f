package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/host/store"
)

const (
	// The connection that holds locks is checked every lockPing, with the timeout lockAnswer. Their sum is well below
	// the 25 seconds after which the server releases the locks of a silent client.
	lockPing   = 2 * time.Second
	lockAnswer = 3 * time.Second
	// lockWait is the longest pause between two attempts to acquire a lock.
	lockWait = 100 * time.Millisecond
)

// locks are the locks of one store: session-level advisory locks, all on one connection, which is opened for the first
// lock. So the number of connections does not depend on the number of locks.
type locks struct {
	engine *engine
	// turn is a mutex for conn.
	turn   chan struct{}
	conn   *pgx.Conn // nil: there is none
	closed bool

	mu sync.Mutex // guards the fields below
	// names are the locks between goroutines of this process, which are acquired first: the server does not distinguish
	// owners on one connection.
	names map[string]*localLock
	held  map[string]context.CancelCauseFunc
	stop  func() // stops watchConn if it runs
	done  sync.WaitGroup
}

// localLock is a lock between the goroutines of this process.
type localLock struct {
	taken chan struct{} // has an element while the lock is held
	users int           // holders and waiters
}

func newLocks(e *engine) *locks {
	return &locks{engine: e, turn: make(chan struct{}, 1), names: map[string]*localLock{},
		held: map[string]context.CancelCauseFunc{}}
}

// lockKey returns the key of a lock's name.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("hako lock " + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func (e *engine) Lock(ctx context.Context, name string) (context.Context, func(), error) {
	held, release, err := e.locks.acquire(ctx, name)
	switch {
	case err == nil:
		return held, release, nil
	case errors.Is(err, store.ErrLocked):
		return nil, nil, fmt.Errorf("store %s: lock %q: %w", e.Name(), name, err)
	}
	return nil, nil, fmt.Errorf("lock %q: %w", name, e.Explain(err))
}

func (l *locks) acquire(ctx context.Context, name string) (context.Context, func(), error) {
	if err := l.acquireLocal(ctx, name); err != nil {
		return nil, nil, err
	}
	for {
		held, err := l.try(ctx, name)
		if err == nil && held != nil {
			return held, sync.OnceFunc(func() { l.release(name); l.releaseLocal(name) }), nil
		}
		if err == nil {
			err = waitToTry(ctx)
		}
		if err != nil {
			l.releaseLocal(name)
			return nil, nil, err
		}
	}
}

func waitToTry(ctx context.Context) error {
	select {
	case <-time.After(lockWait/4 + rand.N(lockWait*3/4)):
		return nil
	case <-ctx.Done():
		return waited(ctx)
	}
}

// waited returns the error for a lock that was held by others until ctx ended.
func waited(ctx context.Context) error { return fmt.Errorf("%w: %w", store.ErrLocked, ctx.Err()) }

// acquireLocal acquires the lock between goroutines of this process.
func (l *locks) acquireLocal(ctx context.Context, name string) error {
	l.mu.Lock()
	own, ok := l.names[name]
	if !ok {
		own = &localLock{taken: make(chan struct{}, 1)}
		l.names[name] = own
	}
	own.users++
	l.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return nil // even if ctx has ended, because one attempt is always made
	default:
	}
	select {
	case own.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.forget(name)
		return waited(ctx)
	}
}

func (l *locks) releaseLocal(name string) {
	l.mu.Lock()
	<-l.names[name].taken
	l.mu.Unlock()
	l.forget(name)
}

// forget removes a name without holders and waiters.
func (l *locks) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name].users--; l.names[name].users == 0 {
		delete(l.names, name)
	}
}

// try requests the lock from the server once. The context is nil if another session holds it. The query is not canceled
// with ctx, because canceling it would close the connection and lose all other locks, and a held lock could not be
// distinguished from a short wait.
func (l *locks) try(ctx context.Context, name string) (context.Context, error) {
	held, err := l.tryOnce(ctx, name)
	if err != nil && l.engine.LostBeforeCommit(err) { // the loss was not detected yet
		return l.tryOnce(ctx, name)
	}
	return held, err
}

// tryOnce is one query of try. It drops a failed connection.
func (l *locks) tryOnce(ctx context.Context, name string) (context.Context, error) {
	if err := l.acquireConn(); err != nil {
		return nil, err
	}
	defer l.releaseConn()
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAnswer)
	defer cancel()
	var got bool
	if err := l.conn.QueryRow(asking, "SELECT pg_try_advisory_lock($1)", lockKey(name)).Scan(&got); err != nil {
		l.dropConn()
		if asking.Err() != nil {
			return nil, l.engine.noAnswer(lockAnswer)
		}
		return nil, err
	}
	if !got {
		return nil, nil
	}
	return l.heldContext(ctx, name), nil
}

// heldContext returns the context of an acquired lock. The caller holds turn.
func (l *locks) heldContext(ctx context.Context, name string) context.Context {
	held, end := context.WithCancelCause(context.WithoutCancel(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[name] = end
	if l.stop == nil {
		tending, stop := context.WithCancel(context.Background())
		l.stop = stop
		l.done.Go(func() { l.watchConn(tending) })
	}
	return held
}

// acquireConn waits for the connection and opens it if needed. Unless it fails, the caller must call releaseConn.
func (l *locks) acquireConn() (err error) {
	bound := l.engine.connectBound() + lockAnswer
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return l.engine.noAnswer(bound)
	}
	switch {
	case l.closed:
		err = errClosed
	case l.conn == nil:
		l.conn, err = l.engine.connect(ctx)
	}
	if err != nil {
		l.releaseConn()
	}
	if err != nil && ctx.Err() != nil {
		return l.engine.noAnswer(bound)
	}
	return err
}

// errClosed is the error of Lock after Close.
var errClosed = errors.New("the store is closed")

func (l *locks) releaseConn() { <-l.turn }

// dropConn closes the connection and loses all locks. It ends their contexts first, because the server gives the locks
// to others once it sees the close. The caller holds turn.
func (l *locks) dropConn() {
	l.mu.Lock()
	for name, end := range l.held {
		end(store.ErrLockLost)
		delete(l.held, name)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// release releases a lock that has not been lost.
func (l *locks) release(name string) {
	l.mu.Lock()
	end, ok := l.held[name]
	delete(l.held, name)
	l.mu.Unlock()
	if !ok {
		return
	}
	end(context.Canceled)
	l.turn <- struct{}{}
	defer l.releaseConn()
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockAnswer)
	defer cancel()
	if _, err := l.conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockKey(name)); err != nil {
		l.dropConn()
	}
}

// watchConn checks the connection periodically.
func (l *locks) watchConn(ctx context.Context) {
	ticker := time.NewTicker(lockPing)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.ping()
		}
	}
}

func (l *locks) ping() {
	l.turn <- struct{}{}
	defer l.releaseConn()
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockAnswer)
	defer cancel()
	if err := l.conn.Ping(ctx); err != nil {
		l.engine.options.Logger.Warn("the database connection that holds locks is lost", "err",
			l.engine.explainWithin(lockAnswer, err))
		l.dropConn()
	}
}

func (l *locks) close() {
	l.turn <- struct{}{}
	l.closed = true
	if l.conn != nil {
		l.dropConn()
	}
	l.releaseConn()
	l.mu.Lock()
	if l.stop != nil {
		l.stop()
	}
	l.mu.Unlock()
	l.done.Wait()
}
