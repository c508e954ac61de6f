// Package database runs untrusted SQL in private SQLite databases. Open returns a DB; a Session runs the statements and
// transactions of one call.
//
// SQLite is compiled to WebAssembly and from there to Go. So each connection has its own limited linear memory with
// checked accesses: a statement can neither exhaust the host's memory nor reach it through a bug in SQLite. An
// authorizer decides at compile time what a statement may do (authorize.go). Time, memory, values, rows and files are
// limited at run time. A database is a file, or pages in a PageStore that several processes share.
package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/hako-run/hako/pdk/abi"
)

// Limits of statements and their results.
const (
	// MaxRows limits the rows of one result.
	MaxRows = 10_000
	// MaxBytes limits the size of one result, and of one value.
	MaxBytes = 4 << 20
	// maxSQL limits a statement, in bytes.
	maxSQL = 256 << 10
	// maxMemory limits the memory of one connection, in bytes.
	maxMemory = 48 << 20
	// maxConns limits the connections of one database. Further callers wait.
	maxConns = 4
	// busyWait limits the time for which a caller waits for others, unless its deadline is earlier.
	busyWait = 5 * time.Second
)

// Options configures a DB.
type Options struct {
	// Path is the file, which is created with its directory if it is missing. With a PageStore it is the name of the
	// database.
	Path string
	// PageStore, if not nil, stores the pages of the database instead of a file.
	PageStore PageStore
	// Migrations are SQL, each applied once, in order.
	Migrations []string
	// Quota limits the size of the file, in bytes. During a transaction the write-ahead log may become 16 MiB larger
	// than that.
	Quota int64

	// system, if not nil, replaces the operating system's files in tests.
	system vfs.VFSFilename

	cache *pageCache // of pages in the PageStore
}

// DB is one database. It is safe for concurrent use. Several processes may open the same file or use the same
// PageStore.
type DB struct {
	options Options
	slots   chan struct{} // one element per used connection
	writer  chan struct{} // one element while a writer is active
	inUse   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	idle   []*conn
	closed bool
}

// Open opens the database and applies the missing migrations, all or none of them, until ctx ends.
//
// An error matches *abi.Error, whose text is safe for the plugin's callers, or *Fault.
func Open(ctx context.Context, options Options) (*DB, error) {
	options.cache = new(pageCache)
	db := &DB{options: options, slots: make(chan struct{}, maxConns), writer: make(chan struct{}, 1)}
	if options.PageStore == nil {
		if err := makeFile(options.Path); err != nil {
			return nil, db.fault(errReadOnly, err)
		}
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// makeFile creates an empty file, which is an empty database for SQLite, readable by this user only.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// Close waits for running statements and closes all connections. It may be called twice. Sessions return errors
// afterwards.
func (db *DB) Close() error {
	db.mu.Lock()
	db.closed = true
	idle := db.idle
	db.idle = nil
	db.mu.Unlock()
	var errs []error
	for _, c := range idle {
		errs = append(errs, c.close())
	}
	db.inUse.Wait()
	return errors.Join(errs...)
}

var errClosed = abi.Errorf(abi.CodeInternal, "the database has been closed")

// acquire returns a connection from the pool, for writing or only for reading. It waits for at most busyWait.
func (db *DB) acquire(ctx context.Context, write bool) (*conn, error) {
	start := time.Now()
	done := func() {}
	if write {
		var err error
		if done, err = db.lock(ctx, start); err != nil {
			return nil, err
		}
	}
	c, err := db.openOrReuse(ctx, start)
	if err != nil {
		done()
		return nil, err
	}
	c.write, c.files.writes, c.done = write, write, done
	return c, nil
}

// lock makes the caller the only writer: in this process, and with a PageStore among all processes. SQLite locks files
// itself.
func (db *DB) lock(ctx context.Context, start time.Time) (release func(), err error) {
	if err := acquireSlot(ctx, db.writer, start); err != nil {
		return nil, err
	}
	if db.options.PageStore == nil {
		return func() { <-db.writer }, nil
	}
	wait, cancel := context.WithDeadline(ctx, start.Add(busyWait))
	defer cancel()
	unlock, err := db.options.PageStore.Lock(wait, db.options.Path)
	if err != nil {
		<-db.writer
		switch {
		case ctx.Err() != nil:
			return nil, contextError(ctx)
		case wait.Err() != nil:
			return nil, errBusy
		}
		return nil, fmt.Errorf("%w: %w", errPageStore, err)
	}
	return func() {
		unlock()
		<-db.writer
	}, nil
}

// acquireSlot sends to queue, until busyWait after start.
func acquireSlot(ctx context.Context, queue chan<- struct{}, start time.Time) error {
	select {
	case queue <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(busyWait - time.Since(start))
	defer timer.Stop()
	select {
	case queue <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	case <-timer.C:
		return errBusy
	}
}

// openOrReuse returns an idle connection or opens one.
func (db *DB) openOrReuse(ctx context.Context, start time.Time) (*conn, error) {
	if err := acquireSlot(ctx, db.slots, start); err != nil {
		return nil, err
	}
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		<-db.slots
		return nil, errClosed
	}
	db.inUse.Add(1)
	if last := len(db.idle) - 1; last >= 0 {
		c := db.idle[last]
		db.idle = db.idle[:last]
		db.mu.Unlock()
		c.resetState()
		return c, nil
	}
	db.mu.Unlock()
	c, err := open(ctx, &db.options)
	if err != nil {
		db.release(c)
		return nil, err
	}
	return c, nil
}

// release returns a connection to the pool. If an abandoned statement still runs on it, release waits for that in the
// background, and the connection keeps its slot and its locks until then.
func (db *DB) release(c *conn) {
	if c.running != nil {
		go func() {
			<-c.running
			c.running, c.broken = nil, true
			db.release(c)
		}()
		return
	}
	failure := c.files.failure
	if err := c.rollback(); err != nil {
		c.broken = true
	}
	if errors.Is(failure, errLog) && !c.broken {
		// A failure shows in the next statement, which needs the room.
		_ = c.checkpoint(context.Background())
	}
	done := c.done
	db.mu.Lock()
	keep := !c.broken && !db.closed
	if keep {
		db.idle = append(db.idle, c)
	}
	db.mu.Unlock()
	if !keep {
		// All transactions have ended, so the error has no consequence.
		_ = c.close()
	}
	if done != nil {
		done()
	}
	<-db.slots
	db.inUse.Done()
}
