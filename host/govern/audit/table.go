package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// migrations create the tables. Released ones must not change. There is one head, with the id 1; unsigned is the number
// of records since the last checkpoint.
var migrations = []string{
	`CREATE TABLE audit_record (seq BIGINT PRIMARY KEY, time BIGINT NOT NULL, line BYTEA NOT NULL);
	CREATE INDEX audit_record_time ON audit_record (time);
	CREATE TABLE audit_head (id BIGINT PRIMARY KEY, public TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL, mac TEXT NOT NULL, unsigned BIGINT NOT NULL)`,
}

const (
	// turn is the name of the store's turn (store.Store.UpdateInTurn) in which replicas write.
	turn = "audit"
	// writeTime bounds writing a batch, readyTime the attempt to write in ready.
	writeTime, readyTime = 15 * time.Second, 3 * time.Second
	// maxBatch and maxBatchBytes bound one batch.
	maxBatch, maxBatchBytes = 500, 4 << 20
)

// table is a log in a store that replicas share. Records that arrive during a write are written together, in one
// transaction that also moves the head. So a replica that dies leaves nothing unfinished, and many records cost few
// transactions.
type table struct {
	options *Options
	key     *key
	stats   *stats

	mu      sync.Mutex // guards the fields below
	waiting []*pending
	writing bool  // writeAll runs
	failed  error // the error of the last batch
	closed  bool
	seen    chain // the end of the log after this process's last write
	done    sync.WaitGroup

	trying sync.Mutex // held by the caller that tries to write again
}

// pending is a record that waits to be written.
type pending struct {
	time time.Time
	body []byte
	done chan error
}

var _ writer = (*table)(nil)

func openTable(options *Options, stats *stats) (*table, *key, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	t := &table{options: options, stats: stats}
	err := errors.New("this store is not shared by replicas: use a directory for the log")
	if options.Store.Shared() {
		err = t.open(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("audit log in %s: %w", options.Store.Where(), err)
	}
	return t, t.key, nil
}

func (t *table) open(ctx context.Context) (err error) {
	if t.options.Key == "" {
		return errors.New("all replicas need the same key: set audit.key to the output of openssl rand -base64 32")
	}
	if t.key, err = parseKey(t.options.Key); err != nil {
		return err
	}
	if err := t.options.Store.Migrate(ctx, "audit", migrations...); err != nil {
		return err
	}
	return t.write(ctx, nil) // records deviations
}

// append waits until the record is written in a batch. If ctx ends before that begins, the record is not written.
func (t *table) append(ctx context.Context, at time.Time, body []byte) error {
	p := &pending{time: at, body: body, done: make(chan error, 1)}
	if err := t.enqueue(p); err != nil {
		return err
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, p)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i >= 0 {
		return ctx.Err()
	}
	return <-p.done // it is being written
}

func (t *table) enqueue(p *pending) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	t.waiting = append(t.waiting, p)
	if !t.writing {
		t.writing = true
		t.done.Go(t.writeAll)
	}
	return nil
}

// writeAll writes batches until no record waits.
func (t *table) writeAll() {
	for {
		batch := t.next()
		if batch == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), writeTime)
		err := t.write(ctx, batch)
		cancel()
		for _, p := range batch {
			p.done <- err
		}
	}
}

// next removes the next batch from the waiting records. It is nil if there are none.
func (t *table) next() []*pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, size := 0, 0
	for n < min(len(t.waiting), maxBatch) && (n == 0 || size+len(t.waiting[n].body) <= maxBatchBytes) {
		size += len(t.waiting[n].body)
		n++
	}
	if n == 0 {
		t.writing, t.waiting = false, nil
		return nil
	}
	batch := t.waiting[:n:n]
	t.waiting = t.waiting[n:]
	return batch
}

// write appends records to the log. Without records it only checks the end of the log.
func (t *table) write(ctx context.Context, batch []*pending) error {
	return t.change(ctx, func(e *end) error {
		for _, p := range batch {
			e.add(p.time, p.body)
		}
		if e.unsigned >= checkpointEvery {
			return e.sign()
		}
		return nil
	})
}

// change runs f on the end of the log and stores what f adds.
func (t *table) change(ctx context.Context, f func(*end) error) error {
	var e *end
	err := t.options.Store.UpdateInTurn(ctx, turn, func(tx *sql.Tx) (err error) {
		if e, err = t.end(ctx, tx); err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
		return e.store(ctx, tx)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = err; err != nil {
		return err
	}
	t.seen = e.chain
	e.count(t.stats)
	return nil
}

// ready writes a checkpoint after a failure, because on a full disk reading would succeed. Only one caller tries at a
// time; others get the last error at once.
func (t *table) ready() error {
	if err := t.state(); err == nil || errors.Is(err, ErrClosed) || !t.trying.TryLock() {
		return err
	}
	defer t.trying.Unlock()
	if t.state() == nil { // another goroutine has written
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	return t.change(ctx, (*end).sign)
}

// state returns the last error of writing, if any.
func (t *table) state() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	return t.failed
}

func (t *table) checkpoint() error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	return t.change(ctx, func(e *end) error {
		if e.unsigned == 0 {
			return nil
		}
		return e.sign()
	})
}

func (t *table) flush() error { return nil } // committed records are on the disk

// close waits for the current batch and signs it, in case this is the last replica.
func (t *table) close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.done.Wait()
	return t.checkpoint()
}
