// Package sqlbroker gives plugins a private SQLite database for each tenant.
//
// A Broker belongs to one plugin. The databases are files in one directory, or lie in a store that replicas share (Place). They are
// opened when a tenant's first statement comes, brought up to date with the plugin's migrations then, and closed when nobody has used
// them for a while. What statements may do, and what bounds them, is in package database.
package sqlbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/internal/database"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// openTime bounds the opening of a database, its migrations included. The call that needs it waits only as long as its own time.
	openTime = 5 * time.Minute
	// idleTime is how long an unused database stays open.
	idleTime = time.Minute
	// maxOpen is how many tenants' databases of one plugin are open.
	maxOpen = 64
)

// Options configures a Broker.
type Options struct {
	// Dir is the directory for the plugin's databases, made when it is needed. Without one every statement is refused.
	Dir string
	// Place, if not nil, has the databases instead: then Dir is the beginning of their names, PLUGIN for PLUGIN/FileName(TENANT).
	Place *Place
	// Observe, if set, is called once for every statement when it is over, from many goroutines at once.
	Observe func(Observation)
	// Logger gets faults of the host's at error level and statements at debug level, never with their text or values. Nil discards
	// them.
	Logger *slog.Logger
}

// Broker runs one plugin's statements. It is safe for concurrent use.
type Broker struct {
	grant   grant.SQL
	dir     string
	place   database.Place // nil: the files of dir
	observe func(Observation)
	log     *slog.Logger

	// ctx ends when the Broker is closed, and with it what opens databases.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	open   map[string]*tenant
	closed bool
}

// New returns a Broker for the database that a plugin was granted.
func New(g *grant.SQL, options Options) *Broker {
	b := &Broker{grant: *g, dir: options.Dir, observe: options.Observe, log: options.Logger, open: map[string]*tenant{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if options.Place != nil {
		b.place = options.Place
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// tenant is one tenant's database, from the first call that needs it until it is closed.
type tenant struct {
	name string
	// ready is closed when db or err is set.
	ready chan struct{}
	db    *database.DB
	err   error
	// users are the calls that use it; since is when the last one ended, and idle what closes it then. Broker.mu guards them.
	users int
	since time.Time
	idle  *time.Timer
}

var errClosed = &abi.Error{Code: abi.CodeInternal, Message: "the plugin has been removed"}

var errNoDir = &abi.Error{Code: abi.CodeNotGranted, Message: "there is no database here"}

// use returns a tenant's database, opened and migrated. The caller calls leave afterwards.
func (b *Broker) use(ctx context.Context, name string) (*tenant, error) {
	t, err := b.enter(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.ready:
	case <-ctx.Done():
		b.leave(t)
		return nil, &abi.Error{Code: abi.CodeBusy, Message: "the database is being brought up to date, which takes longer than the call's time: try again"}
	}
	if t.err != nil {
		b.leave(t)
		return nil, t.err
	}
	return t, nil
}

// enter counts a call in, and opens the database if it is the first.
func (b *Broker) enter(name string) (*tenant, error) {
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
			return nil, &abi.Error{Code: abi.CodeBusy, Message: fmt.Sprintf("calls of %d tenants use their databases now: try again", maxOpen)}
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
		Path: b.path(t.name), Place: b.place, Migrations: b.grant.Migrations, Quota: b.grant.Quota,
	})
	if t.err == nil {
		return
	}
	var fault *database.Fault
	switch {
	case errors.As(t.err, &fault):
		b.fault(fault)
	case b.ctx.Err() == nil: // its callers are told, but are not those who can help
		b.log.Warn("a plugin's database cannot be opened", "plugin", filepath.Base(b.dir), "tenant", t.name, "err", t.err)
	}
	b.mu.Lock()
	if b.open[t.name] == t { // unless it made room for another meanwhile
		delete(b.open, t.name) // the next call tries again
	}
	b.mu.Unlock()
}

// path is where a tenant's database is.
func (b *Broker) path(tenant string) string {
	if b.place != nil {
		return b.dir + "/" + FileName(tenant)
	}
	return filepath.Join(b.dir, FileName(tenant))
}

// leave counts a call out.
func (b *Broker) leave(t *tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.users--
	t.since = time.Now()
	t.idle.Reset(idleTime)
}

// closeIdle closes a database that nobody has used for idleTime.
func (b *Broker) closeIdle(t *tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[t.name] == t && t.users == 0 && time.Since(t.since) >= idleTime {
		b.shut(t)
	}
}

// evict makes room by closing the database that has been unused for longest. It reports false if all are in use.
func (b *Broker) evict() bool {
	var oldest *tenant
	for _, t := range b.open {
		if t.users == 0 && (oldest == nil || t.since.Before(oldest.since)) {
			oldest = t
		}
	}
	if oldest != nil {
		b.shut(oldest)
	}
	return oldest != nil
}

// shut takes a database out and closes it in the background. b.mu is held.
func (b *Broker) shut(t *tenant) {
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

// Close closes the databases when the statements that run have ended. It may be called twice.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, t := range b.open {
		b.shut(t)
	}
	b.mu.Unlock()
	b.cancel()
	b.work.Wait()
	return nil
}

// fault tells the operator of a failure of the host's.
func (b *Broker) fault(fault *database.Fault) {
	b.log.Error("a plugin's database cannot be used", "path", fault.Path, "err", fault.Err)
}
