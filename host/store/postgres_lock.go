package store

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
)

const (
	// lockPing is how often the connection that holds locks is tried, and lockAnswer how long an answer may take. Together they are well
	// within the 25 seconds after which the server gives a silent machine's locks to others.
	lockPing   = 2 * time.Second
	lockAnswer = 3 * time.Second
	// lockWait is the longest pause between two attempts at a lock.
	lockWait = 100 * time.Millisecond
)

// locks are the locks of one store: session advisory locks, all on one connection, which is made for the first. So the number of locks costs
// the server no connections.
type locks struct {
	engine *postgres
	// turn is held by who uses conn.
	turn   chan struct{}
	conn   *pgx.Conn // nil: there is none
	closed bool

	mu sync.Mutex // guards what follows
	// names are taken within this process first: to the server all locks of one connection are one owner's.
	names map[string]*localLock
	held  map[string]context.CancelCauseFunc
	stop  func() // ends tend, if it runs
	done  sync.WaitGroup
}

// localLock is a lock among the goroutines of this process.
type localLock struct {
	taken chan struct{} // full while somebody has it
	users int           // who have it or wait
}

func newLocks(e *postgres) *locks {
	return &locks{engine: e, turn: make(chan struct{}, 1), names: map[string]*localLock{}, held: map[string]context.CancelCauseFunc{}}
}

// lockKey is the number of a lock's name.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("hako lock " + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func (e *postgres) lock(ctx context.Context, name string) (context.Context, func(), error) {
	held, release, err := e.locks.take(ctx, name)
	switch {
	case err == nil:
		return held, release, nil
	case errors.Is(err, ErrLocked):
		return nil, nil, fmt.Errorf("store %s: lock %q: %w", e.name(), name, err)
	}
	return nil, nil, fmt.Errorf("lock %q: %w", name, e.explain(err))
}

func (l *locks) take(ctx context.Context, name string) (context.Context, func(), error) {
	if err := l.enter(ctx, name); err != nil {
		return nil, nil, err
	}
	for {
		held, err := l.try(ctx, name)
		if err == nil && held != nil {
			return held, sync.OnceFunc(func() { l.release(name); l.leave(name) }), nil
		}
		if err == nil {
			err = waitToTry(ctx)
		}
		if err != nil {
			l.leave(name)
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

// waited says that somebody else had the lock until ctx ended.
func waited(ctx context.Context) error { return fmt.Errorf("%w: %w", ErrLocked, ctx.Err()) }

// enter takes the lock among this process's goroutines.
func (l *locks) enter(ctx context.Context, name string) error {
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
		return nil // also if ctx has ended: one attempt is always made
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

func (l *locks) leave(name string) {
	l.mu.Lock()
	<-l.names[name].taken
	l.mu.Unlock()
	l.forget(name)
}

// forget drops a name that nobody has or waits for.
func (l *locks) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name].users--; l.names[name].users == 0 {
		delete(l.names, name)
	}
}

// try asks the server for the lock once. The context is nil if another session has it. The question does not end with ctx: the connection
// would end with it, and with that all other locks, and nobody could tell a lock that is taken from a wait that was short.
func (l *locks) try(ctx context.Context, name string) (context.Context, error) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAnswer)
	defer cancel()
	held, err := l.ask(asking, ctx, name)
	if err != nil && l.engine.lost(err) { // before anybody noticed
		held, err = l.ask(asking, ctx, name)
	}
	if err != nil && asking.Err() != nil {
		return nil, l.engine.noAnswer(lockAnswer)
	}
	return held, err
}

// ask is one question of try's, in its turn, for which the time of asking is. A connection that fails is given up.
func (l *locks) ask(asking, ctx context.Context, name string) (context.Context, error) {
	if err := l.use(asking); err != nil {
		return nil, err
	}
	defer l.unuse()
	var got bool
	if err := l.conn.QueryRow(asking, "SELECT pg_try_advisory_lock($1)", lockKey(name)).Scan(&got); err != nil {
		l.drop()
		return nil, err
	}
	if !got {
		return nil, nil
	}
	return l.hold(ctx, name), nil
}

// hold makes the context of a lock that is there. It is the caller's turn.
func (l *locks) hold(ctx context.Context, name string) context.Context {
	held, end := context.WithCancelCause(context.WithoutCancel(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[name] = end
	if l.stop == nil {
		tending, stop := context.WithCancel(context.Background())
		l.stop = stop
		l.done.Go(func() { l.tend(tending) })
	}
	return held
}

// use waits for the connection, and makes one if there is none. The caller ends with unuse unless it fails.
func (l *locks) use(ctx context.Context) (err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case l.closed:
		err = errClosed
	case l.conn == nil:
		l.conn, err = l.engine.connect(ctx)
	}
	if err != nil {
		l.unuse()
	}
	return err
}

// errClosed is the error of Lock after Close.
var errClosed = errors.New("the store is closed")

func (l *locks) unuse() { <-l.turn }

// drop gives the connection up, and with it all locks: first here, for the server gives them to others when it hears of it. It is the
// caller's turn.
func (l *locks) drop() {
	l.mu.Lock()
	for name, end := range l.held {
		end(ErrLockLost)
		delete(l.held, name)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// release gives one lock back, if it has not been lost.
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
	defer l.unuse()
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockAnswer)
	defer cancel()
	if _, err := l.conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockKey(name)); err != nil {
		l.drop()
	}
}

// tend looks whether the connection is still there.
func (l *locks) tend(ctx context.Context) {
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
	defer l.unuse()
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockAnswer)
	defer cancel()
	if err := l.conn.Ping(ctx); err != nil {
		l.engine.options.Logger.Warn("the connection that holds locks in the database is lost", "err", l.engine.explainWithin(lockAnswer, err))
		l.drop()
	}
}

func (l *locks) close() {
	l.turn <- struct{}{}
	l.closed = true
	if l.conn != nil {
		l.drop()
	}
	l.unuse()
	l.mu.Lock()
	if l.stop != nil {
		l.stop()
	}
	l.mu.Unlock()
	l.done.Wait()
}
