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

// steps are the migrations of the tables. Those that were released never change. There is one head, whose id is 1;
// unsigned is how many records came since the last checkpoint.
var steps = []string{
	`CREATE TABLE audit_record (seq BIGINT PRIMARY KEY, time BIGINT NOT NULL, line BYTEA NOT NULL);
	CREATE INDEX audit_record_time ON audit_record (time);
	CREATE TABLE audit_head (id BIGINT PRIMARY KEY, public TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL, mac TEXT NOT NULL, unsigned BIGINT NOT NULL)`,
}

const (
	// turn is the name under which all replicas write, one after the other.
	turn = "audit"
	// writeTime bounds writing a batch, and readyTime the look whether one could be written.
	writeTime, readyTime = 15 * time.Second, 3 * time.Second
	// maxBatch and maxBatchBytes bound what is written at once.
	maxBatch, maxBatchBytes = 500, 4 << 20
)

// table is a log in a store that replicas share. Records that come while others are being written are written together,
// in one transaction, which also moves the head: so a replica that dies leaves nothing unfinished, and records cost
// fewer transactions the more there are.
type table struct {
	options *Options
	key     *key
	stats   *stats

	mu      sync.Mutex // guards what follows
	waiting []*pending
	writing bool  // a goroutine writes what waits
	failed  error // why the last batch could not be written; nil: it could
	closed  bool
	seen    chain // the end of the log when this process wrote last
	done    sync.WaitGroup

	trying sync.Mutex // held by who looks whether it can be written again
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
	err := errors.New("this store is not shared: the log lies in a directory beside it")
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
		return errors.New("all replicas need one key to sign it with: set audit.key, to what openssl rand -base64 32 prints")
	}
	if t.key, err = parseKey(t.options.Key); err != nil {
		return err
	}
	if err := t.options.Store.Migrate(ctx, "audit", steps...); err != nil {
		return err
	}
	return t.write(ctx, nil) // notes what is not as it should be
}

// append waits until the record is written, together with others. If ctx ends before its turn it is not.
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

// writeAll writes batches as long as there is something to write.
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

// next takes the next batch. It is nil if nothing waits.
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

// write adds records to the end of the log. Without any it only looks whether that is as it should be.
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

// change runs f on the end of the log, and keeps what it has added.
func (t *table) change(ctx context.Context, f func(*end) error) error {
	var e *end
	err := t.options.Store.UpdateInTurn(ctx, turn, func(tx *sql.Tx) (err error) {
		if e, err = t.end(ctx, tx); err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
		return e.keep(ctx, tx)
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

// ready asks the database only after a failure, and one caller at a time: the others hear of the failure at once. It
// writes a checkpoint: on a disk that is full, looking would succeed.
func (t *table) ready() error {
	if err := t.state(); err == nil || errors.Is(err, ErrClosed) || !t.trying.TryLock() {
		return err
	}
	defer t.trying.Unlock()
	if t.state() == nil { // since somebody else has written
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	return t.change(ctx, (*end).sign)
}

// state is why nothing can be written, as far as is known.
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

func (t *table) flush() error { return nil } // what is committed is on the disk

// close waits for what is being written. It signs it, so that nothing is unsigned if this is the last replica.
func (t *table) close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.done.Wait()
	return t.checkpoint()
}
