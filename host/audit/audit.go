// Package audit keeps a record of every call and of what operators do, in a form that shows when somebody has changed
// it.
//
// A Log is a directory of segments, files of JSON lines, or a table of such lines in a PostgreSQL database. Each line
// holds the SHA-256 of the one before, so that an edit, a deletion or another order breaks the chain; now and then a
// checkpoint signs the chain so far with Ed25519, so that nobody without the key can make another one; and a head,
// authenticated with the same key, says where the log ends, so that its end cannot be cut off. Verify finds all of
// these. What it cannot find is that the whole directory was put back to an earlier state: for that, keep the head that
// it prints somewhere else and compare.
//
// docs/audit.md describes the format.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Options configures a Log.
type Options struct {
	// Dir is the directory, which is made, for this user alone, if it is missing.
	Dir string
	// Store, if it is not nil, is where the log lies in the place of Dir: one that replicas share (store.Store.Shared).
	// All of them write to one log, and outlive each other's ends. The caller closes it, after the Log.
	Store *store.Store
	// Key is the log's key, as its file audit.key has it: 32 bytes in base64. It is needed with Store, the same for all
	// replicas. Without Store it is left empty: the key lies in Dir.
	Key string
	// Sync makes Append wait until the record is on the disk: it then outlives a loss of power. Otherwise it outlives
	// the end of this process, however that comes, and is on the disk a second later. With Store it is there when the
	// server says so, and Sync overrides a server's setting to say so early (synchronous_commit).
	Sync bool
	// SegmentBytes is the size at which a new segment begins, in bytes. Zero means 64 MiB. There are no segments with
	// Store.
	SegmentBytes int64
	// Retain is for how long records are kept, and a tenth of that longer at most. Zero means for ever.
	Retain time.Duration
	// Now is the clock. Nil means Store's, or time.Now.
	Now func() time.Time
	// Logger receives what happens to the log itself. Nil discards it.
	Logger *slog.Logger
}

const (
	// checkpointEvery and checkpointAfter bound what is not signed yet, in records and in time.
	checkpointEvery = 1000
	checkpointAfter = time.Minute
	// syncAfter is when records are on the disk without Options.Sync.
	syncAfter = time.Second
	// maxRecord bounds one record, in bytes.
	maxRecord = 1 << 20
)

// Log is the audit log. It is safe for concurrent use, also by several processes over one directory or store.
type Log struct {
	options Options
	key     *key
	writer  writer
	stats   *stats
	stop    chan struct{}
	done    sync.WaitGroup
	closing sync.Once
}

// writer is where a Log writes.
type writer interface {
	// append writes a record, of a body that Event.encode made.
	append(ctx context.Context, at time.Time, body []byte) error
	// ready is Ready.
	ready() error
	// checkpoint signs what is not signed yet.
	checkpoint() error
	// flush brings what was written to the disk.
	flush() error
	// expire removes what is too old.
	expire(ctx context.Context) error
	// close signs and flushes. Later calls of append and ready return ErrClosed.
	close() error
}

// ErrClosed is the error of Append after Close.
var ErrClosed = errors.New("the audit log is closed")

// Open opens the log and makes one if there is none. The caller closes it.
//
// What an earlier process left unfinished in the middle of a record, which it cannot have answered, is cut off; an end
// that is not where the head says is noted in the log. It fails if the directory or the store cannot be used, or if the
// log's key is missing or not the one that the log was begun with.
func Open(options *Options) (*Log, error) {
	l := &Log{options: *options, stop: make(chan struct{}), stats: new(stats)}
	if l.options.SegmentBytes == 0 {
		l.options.SegmentBytes = 64 << 20
	}
	switch {
	case l.options.Now != nil:
	case l.options.Store != nil:
		l.options.Now = l.options.Store.Time
	default:
		l.options.Now = time.Now
	}
	if l.options.Logger == nil {
		l.options.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if l.options.Store != nil {
		l.writer, l.key, err = openTable(&l.options, l.stats)
	} else {
		l.writer, l.key, err = openFiles(&l.options, l.stats)
	}
	if err != nil {
		return nil, err
	}
	l.done.Go(l.tend)
	return l, nil
}

// Append records an event, whose time is set if it is zero. When it returns nil the record outlives this process.
//
// It fails with ErrClosed, with an error of package os when the disk is full or the files are gone, with one of package
// store, or with ctx's error when another process holds the log for too long; then there is no record (there may be one
// if the connection to the database was lost at the very end), and the caller has to decide whether it goes on without.
func (l *Log) Append(ctx context.Context, event *Event) (err error) {
	defer func() {
		if err != nil {
			l.stats.failures.Add(1)
		}
	}()
	event.Time = l.moment(event.Time)
	body, err := event.encode()
	if err != nil {
		return err
	}
	if err := l.writer.append(ctx, event.Time, body); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// moment is t by the clock of the log. Where replicas share that, its clock is the database's, and t one of this
// machine's, which may be wrong.
func (l *Log) moment(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return l.options.Now()
	case l.options.Store == nil:
		return t
	}
	return l.options.Now().Add(-time.Since(t))
}

// Ready returns an error if nothing can be recorded at present, so that what could not be recorded need not be begun.
// After an error of Append it tries to write again; else it looks whether the files are still there, which takes
// microseconds.
func (l *Log) Ready() error {
	if err := l.writer.ready(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Checkpoint signs what has been recorded since the last checkpoint; without anything it does nothing. The Log does so
// by itself every minute and every thousand records.
func (l *Log) Checkpoint() error { return l.writer.checkpoint() }

// Expire removes what is older than Options.Retain. One of the processes over the store calls it from time to time; in
// a directory the Log does so by itself, when it is opened and every minute. Errors are as for Append.
func (l *Log) Expire(ctx context.Context) error {
	if err := l.writer.expire(ctx); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// tend signs and flushes what has come since the last time.
func (l *Log) tend() {
	flush, sign := time.NewTicker(syncAfter), time.NewTicker(checkpointAfter)
	defer flush.Stop()
	defer sign.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-flush.C:
			l.options.warn(l.writer.flush(), "flush the audit log")
		case <-sign.C:
			l.options.warn(l.writer.checkpoint(), "sign the audit log")
			if l.options.Store == nil {
				l.options.warn(l.writer.expire(context.Background()), "remove old records of the audit log")
			}
		}
	}
}

// warn reports what failed beside the recording itself, and is tried again.
func (o *Options) warn(err error, doing string) {
	if err != nil {
		o.Logger.Warn(doing, "err", err)
	}
}

// Close signs and flushes what is there. It may be called twice.
func (l *Log) Close() (err error) {
	l.closing.Do(func() {
		close(l.stop)
		l.done.Wait()
		err = l.writer.close()
	})
	return err
}
