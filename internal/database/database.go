// Package database runs SQL that nobody has to trust, each database a SQLite file of its own.
//
// SQLite is compiled to WebAssembly and from there to Go, so each connection has a bounded memory of its own, with every access
// checked: a statement can neither take the host's memory nor, by a fault in SQLite, reach it. What a statement may do is decided when
// it is compiled (authorize.go); time, memory, values, rows and files are bounded while it runs.
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

// Bounds of statements and their answers.
const (
	// MaxRows is the most rows of one answer.
	MaxRows = 10_000
	// MaxBytes is the most bytes of one answer, and of one value.
	MaxBytes = 4 << 20
	// maxSQL is the longest statement, in bytes.
	maxSQL = 256 << 10
	// maxMemory is the most that one connection takes, in bytes.
	maxMemory = 48 << 20
	// maxConns is how many connections one database has; more callers wait.
	maxConns = 4
	// busyWait is how long a caller waits for others, if its deadline is not before.
	busyWait = 5 * time.Second
)

// Options are what a database is made of.
type Options struct {
	// Path is the file, made if it is missing, with its directory. In a Place it is the database's name there.
	Path string
	// Place is where the database lies if not in a file.
	Place Place
	// Migrations are SQL, each applied once, in order.
	Migrations []string
	// Quota is the most bytes of the file. While a transaction runs, the write-ahead log beside it may grow as large and 16 MiB more.
	Quota int64

	// system, if not nil, takes the place of the operating system's files, in tests.
	system vfs.VFSFilename

	cache *pageCache // of the Place
}

// DB is one database. It is safe for concurrent use, also by several processes on one file or in one Place.
type DB struct {
	options Options
	slots   chan struct{} // one element per connection in use
	writer  chan struct{} // holds one element while somebody writes
	inUse   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	idle   []*conn
	closed bool
}

// Open opens the database and applies the migrations that are missing, all of them or none. ctx bounds that.
//
// An error matches *abi.Error, which may be shown to the plugin's callers, or *Fault.
func Open(ctx context.Context, options Options) (*DB, error) {
	options.cache = new(pageCache)
	db := &DB{options: options, slots: make(chan struct{}, maxConns), writer: make(chan struct{}, 1)}
	if options.Place == nil {
		if err := makeFile(options.Path); err != nil {
			return nil, db.fault(errReadOnly, err)
		}
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// makeFile makes a file that nobody else may read, which SQLite takes for an empty database.
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

// Close waits for the statements that run and closes all connections. It may be called twice. Sessions get errors from then on.
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

var errClosed = &abi.Error{Code: abi.CodeInternal, Message: "the database has been closed"}

// acquire takes a connection out of the pool, to write or only to read, and waits for it no longer than busyWait.
func (db *DB) acquire(ctx context.Context, write bool) (*conn, error) {
	start := time.Now()
	done := func() {}
	if write {
		var err error
		if done, err = db.lock(ctx, start); err != nil {
			return nil, err
		}
	}
	c, err := db.reserve(ctx, start)
	if err != nil {
		done()
		return nil, err
	}
	c.write, c.files.writes, c.done = write, write, done
	return c, nil
}

// lock makes the caller the only one who writes: in this process, and in a Place among all. SQLite has locks of its own for files.
func (db *DB) lock(ctx context.Context, start time.Time) (release func(), err error) {
	if err := enter(ctx, db.writer, start); err != nil {
		return nil, err
	}
	if db.options.Place == nil {
		return func() { <-db.writer }, nil
	}
	wait, cancel := context.WithDeadline(ctx, start.Add(busyWait))
	defer cancel()
	unlock, err := db.options.Place.Lock(wait, db.options.Path)
	if err != nil {
		<-db.writer
		switch {
		case ctx.Err() != nil:
			return nil, ended(ctx)
		case wait.Err() != nil:
			return nil, errBusy
		}
		return nil, fmt.Errorf("%w: %w", errPlace, err)
	}
	return func() {
		unlock()
		<-db.writer
	}, nil
}

// enter takes a place in queue, within busyWait of start.
func enter(ctx context.Context, queue chan<- struct{}, start time.Time) error {
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
		return ended(ctx)
	case <-timer.C:
		return errBusy
	}
}

// reserve takes an idle connection, or opens one.
func (db *DB) reserve(ctx context.Context, start time.Time) (*conn, error) {
	if err := enter(ctx, db.slots, start); err != nil {
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
		c.renew()
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

// release gives a connection back. One that is still busy, because its statement did not heed the deadline, is waited for in the
// background, and with it whatever it holds.
func (db *DB) release(c *conn) {
	if c.running != nil {
		go func() {
			<-c.running
			c.running, c.broken = nil, true
			db.release(c)
		}()
		return
	}
	full := c.files.full
	if err := c.rollback(); err != nil {
		c.broken = true
	}
	if errors.Is(full, errLog) && !c.broken {
		// Makes room for the next statement as far as can be; that one tells if it does not.
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
		// What it did is committed or lost already; nobody could act on the error.
		_ = c.close()
	}
	if done != nil {
		done()
	}
	<-db.slots
	db.inUse.Done()
}
