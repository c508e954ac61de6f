// Package audit records every call and every operation of an operator in a log that shows whether it was changed.
//
// A Log is a directory of segments, which are files of JSON lines, or a table of such lines in a PostgreSQL database.
// Three things protect it. Each record contains the SHA-256 hash of the previous one, so an edited, deleted or moved
// record breaks the chain. A checkpoint regularly signs the chain with Ed25519, so nobody without the key can make
// another chain. The head, authenticated with the same key, says where the log ends, so the end cannot be cut off.
// Verify checks all of these. It cannot detect that the whole log was replaced with an earlier state: for that, keep
// the head that it prints in another place and compare.
//
// Open returns a Log, and Log.Append writes an Event. Recorder records operations. Dir and Table are Places from which
// logs are read. docs/audit.md describes the format.
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
	// Dir is the directory. A missing one is created for this user only.
	Dir string
	// Store, if not nil, holds the log instead of Dir. Replicas that share it (store.Store.Shared) write one log. The
	// caller closes it after the Log.
	Store *store.Store
	// Key is the log's key in the form of the file audit.key: 32 bytes in base64. With Store it is required, and all
	// replicas have the same one. Without Store it is empty, because the key is in Dir.
	Key string
	// Sync makes Append wait until the record is on the disk, so that it survives a loss of power. Otherwise a record
	// survives any end of this process and is on the disk a second later. With Store, Append waits for the server's
	// commit, and Sync overrides a setting of the server that acknowledges commits early (synchronous_commit).
	Sync bool
	// SegmentBytes is the size at which a new segment begins. Zero means 64 MiB. A log in a Store has no segments.
	SegmentBytes int64
	// Retain is the time for which records are kept, some of them up to a tenth longer. Zero means forever.
	Retain time.Duration
	// Now is the clock. Nil means Store's, or time.Now.
	Now func() time.Time
	// Logger receives problems of the log itself. Nil discards them.
	Logger *slog.Logger
}

const (
	// checkpointEvery and checkpointAfter bound the unsigned records in number and in time.
	checkpointEvery = 1000
	checkpointAfter = time.Minute
	// syncAfter is the time after which records are on the disk without Options.Sync.
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

// writer is the place that a Log writes to.
type writer interface {
	// append writes a record whose body Event.encode made.
	append(ctx context.Context, at time.Time, body []byte) error
	// ready implements Ready.
	ready() error
	// checkpoint signs the unsigned records.
	checkpoint() error
	// flush writes records to the disk.
	flush() error
	// expire removes records older than Options.Retain.
	expire(ctx context.Context) error
	// close signs and flushes. Later calls of append and ready return ErrClosed.
	close() error
}

// ErrClosed is the error of Append after Close.
var ErrClosed = errors.New("the audit log is closed")

// Open opens the log, or creates one. The caller closes it.
//
// An unfinished record of an earlier process is cut off: Append has not returned for it. If the end differs from the
// head, that is noted in the log. Open fails if the directory or the store cannot be used, and if the log's key is
// missing or is not the one that the log was begun with.
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
	l.done.Go(l.maintain)
	return l, nil
}

// Append records an event. It sets event.Time: to now if it is zero and, in a log that replicas share, to the time by
// the database's clock; in UTC in all cases. After Append returns nil, the record survives the end of this process.
//
// Append fails with ErrClosed, with an error of package os if the disk is full or the files are gone, with an error of
// package store, or with ctx's error if another process holds the log for too long. Then there is no record, except
// possibly if the connection to the database was lost during the commit. The caller decides whether to continue without
// a record.
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

// moment returns t by the log's clock. For a log that replicas share, that is the database's clock, while t is from
// this machine's clock, which may be wrong.
func (l *Log) moment(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return l.options.Now()
	case l.options.Store == nil:
		return t
	}
	return l.options.Now().Add(-time.Since(t))
}

// Ready returns an error if nothing can be recorded at the moment, so that a caller need not begin what it could not
// record. After an error of Append, Ready tries to write; otherwise it checks in microseconds that the files are still
// there.
func (l *Log) Ready() error {
	if err := l.writer.ready(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Checkpoint signs the records since the last checkpoint, if there are any. The Log does so itself every minute and
// every thousand records.
func (l *Log) Checkpoint() error { return l.writer.checkpoint() }

// Expire removes records older than Options.Retain. With Store, one of the replicas calls it from time to time. In a
// directory, the Log does so itself when it is opened and every minute. Errors are as for Append.
func (l *Log) Expire(ctx context.Context) error {
	if err := l.writer.expire(ctx); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// maintain flushes, signs and expires records until Close.
func (l *Log) maintain() {
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

// warn logs the failure of maintenance, which is tried again.
func (o *Options) warn(err error, doing string) {
	if err != nil {
		o.Logger.Warn(doing, "err", err)
	}
}

// Close signs and flushes the records. It may be called twice.
func (l *Log) Close() (err error) {
	l.closing.Do(func() {
		close(l.stop)
		l.done.Wait()
		err = l.writer.close()
	})
	return err
}
