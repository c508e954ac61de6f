// Package sqlbroker gives plugins a private SQLite database for each tenant. New returns a plugin's Broker, and
// Broker.Module its import module.
//
// The databases are files in one directory, or pages in a store that replicas share (PageStore). A tenant's first
// statement opens its database and applies the plugin's migrations. An idle database is closed. Package database
// restricts and limits the statements.
package sqlbroker

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// openTime is the timeout for opening a database, including migrations. A call waits for it no longer than its own
	// deadline.
	openTime = 5 * time.Minute
	// idleTime is the time after which an unused database is closed.
	idleTime = time.Minute
	// maxOpen limits the open databases of one plugin.
	maxOpen = 64
)

// Options configures a Broker.
type Options struct {
	// Dir is the directory of the plugin's databases, created when needed. If it is empty, every statement is refused.
	Dir string
	// PageStore, if not nil, stores the databases instead. Dir is then the prefix of their names,
	// PLUGIN/FileName(TENANT).
	PageStore *PageStore
	// Observe, if set, is called once after every statement. It must be safe for concurrent use.
	Observe func(Observation)
	// Logger gets failures of the host at error level and statements, without text and values, at debug level. Nil
	// discards them.
	Logger *slog.Logger
}

// Broker runs one plugin's statements. It is safe for concurrent use.
type Broker struct {
	grant   grant.SQL
	dir     string
	pages   database.PageStore // nil: the files of dir
	observe func(Observation)
	log     *slog.Logger

	// ctx ends when the Broker is closed, which cancels the opening of databases.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[string]*tenant
	closed bool
}

// New returns a Broker for the database that a plugin was granted.
func New(g *grant.SQL, options Options) *Broker {
	b := &Broker{grant: *g, dir: options.Dir, observe: options.Observe, log: options.Logger, open: map[string]*tenant{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if options.PageStore != nil {
		b.pages = options.PageStore
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// tenant is the open database of one tenant.
type tenant struct {
	name string
	// ready is closed when db or err is set.
	ready chan struct{}
	db    *database.DB
	err   error
	// users is the number of calls that use it; since is the end of the last call, and idle the timer that closes it.
	// Broker.mu guards them.
	users int
	since time.Time
	idle  *time.Timer
}

var errClosed = abi.Errorf(abi.CodeInternal, "the plugin has been removed")

var errNoDir = abi.Errorf(abi.CodeNotGranted, "this process has no database for plugins")

// acquire returns a tenant's database, opened and migrated. The caller must release it.
func (b *Broker) acquire(ctx context.Context, name string) (*tenant, error) {
	t, err := b.register(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.ready:
	case <-ctx.Done():
		b.release(t)
		return nil, abi.Errorf(abi.CodeBusy,
			"the database is being migrated, which takes longer than this call may: try again")
	}
	if t.err != nil {
		b.release(t)
		return nil, t.err
	}
	return t, nil
}

// register adds a call to the users of a database, and opens the database if it is not open.
func (b *Broker) register(name string) (*tenant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	if b.dir == "" {
		return nil, errNoDir
	}
	t, ok := b.open[name]
	if !ok {
		if len(b.open) >= maxOpen && !b.evict() {
			return nil, abi.Errorf(abi.CodeBusy, "the databases of %d tenants are in use: try again", maxOpen)
		}
		t = &tenant{name: name, ready: make(chan struct{})}
		t.idle = time.AfterFunc(idleTime, func() { b.closeIdle(t) })
		b.open[name] = t
		b.work.Go(func() { b.start(t) })
	}
	t.users++
	return t, nil
}

// start opens the database.
func (b *Broker) start(t *tenant) {
	defer close(t.ready)
	ctx, cancel := context.WithTimeout(b.ctx, openTime)
	defer cancel()
	t.db, t.err = database.Open(ctx, database.Options{
		Path: b.path(t.name), PageStore: b.pages, Migrations: b.grant.Migrations, Quota: b.grant.Quota,
	})
	if t.err == nil {
		return
	}
	var fault *database.Fault
	switch {
	case errors.As(t.err, &fault):
		b.logFault(fault)
	case b.ctx.Err() == nil: // the callers get the error, but the operator has to act
		b.log.Warn("a plugin's database cannot be opened", "plugin", filepath.Base(b.dir),
			"tenant", t.name, "err", t.err)
	}
	b.mu.Lock()
	if b.open[t.name] == t { // unless it was evicted meanwhile
		delete(b.open, t.name) // the next call tries again
	}
	b.mu.Unlock()
}

// path returns the file or the name of a tenant's database.
func (b *Broker) path(tenant string) string {
	if b.pages != nil {
		return b.dir + "/" + FileName(tenant)
	}
	return filepath.Join(b.dir, FileName(tenant))
}

// release removes a call from the users of a database.
func (b *Broker) release(t *tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.users--
	t.since = time.Now()
	t.idle.Reset(idleTime)
}

// closeIdle closes a database that has been unused for idleTime.
func (b *Broker) closeIdle(t *tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[t.name] == t && t.users == 0 && time.Since(t.since) >= idleTime {
		b.closeLocked(t)
	}
}

// evict closes the least recently used idle database. It reports false if all are in use.
func (b *Broker) evict() bool {
	var oldest *tenant
	for _, t := range b.open {
		if t.users == 0 && (oldest == nil || t.since.Before(oldest.since)) {
			oldest = t
		}
	}
	if oldest != nil {
		b.closeLocked(oldest)
	}
	return oldest != nil
}

// closeLocked removes a database and closes it in the background. The caller holds b.mu.
func (b *Broker) closeLocked(t *tenant) {
	t.idle.Stop()
	delete(b.open, t.name)
	b.work.Go(func() {
		<-t.ready
		if t.db == nil {
			return
		}
		if err := t.db.Close(); err != nil {
			b.log.Warn("close a plugin's database", "err", err)
		}
	})
}

// Close waits for running statements and closes the databases. It may be called twice.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, t := range b.open {
		b.closeLocked(t)
	}
	b.mu.Unlock()
	b.cancel()
	b.work.Wait()
	return nil
}

// logFault logs a failure of the host.
func (b *Broker) logFault(fault *database.Fault) {
	b.log.Error("a plugin's database cannot be used", "path", fault.Path, "err", fault.Err)
}
