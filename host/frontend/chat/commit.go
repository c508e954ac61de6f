package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/host/store"
)

// committer batches the writes of concurrent turns: changes that arrive during a transaction share the next one. A
// hundred conversations then wait for a few commits instead of a hundred.
type committer struct {
	store  *store.Store
	logger *slog.Logger
	wanted chan *change
	done   chan struct{}
}

// change is a queued write of one turn.
type change struct {
	write func(context.Context, *sql.Tx) error
	err   error
	done  chan struct{} // closed when err is set
}

// maxBatch bounds the changes of one transaction.
const maxBatch = 256

func newCommitter(s *store.Store, logger *slog.Logger) *committer {
	c := &committer{s, logger, make(chan *change, maxBatch), make(chan struct{})}
	go c.run()
	return c
}

// write applies a change in a transaction shared with others and waits for the commit. A refused change does not affect
// the others; an error of the store fails all of them. write may be called more than once.
func (c *committer) write(write func(context.Context, *sql.Tx) error) error {
	wanted := c.enqueue(write)
	<-wanted.done
	return wanted.err
}

// enqueue queues a change without waiting. Changes are applied in order. Errors are logged.
func (c *committer) enqueue(write func(context.Context, *sql.Tx) error) *change {
	wanted := &change{write: write, done: make(chan struct{})}
	c.wanted <- wanted
	return wanted
}

// run commits queued changes until close.
func (c *committer) run() {
	defer close(c.done)
	for first := range c.wanted {
		c.commit(c.drain([]*change{first}))
	}
}

// drain appends the changes that are queued now.
func (c *committer) drain(changes []*change) []*change {
	for len(changes) < maxBatch {
		select {
		case next, ok := <-c.wanted:
			if !ok {
				return changes
			}
			changes = append(changes, next)
		default:
			return changes
		}
	}
	return changes
}

func (c *committer) commit(changes []*change) {
	// Cancelled turns are saved too, so their contexts do not apply.
	ctx := context.Background()
	err := c.store.Update(ctx, func(tx *sql.Tx) error {
		for _, wanted := range changes {
			if wanted.err = inSavepoint(ctx, tx, wanted.write); wanted.err != nil && !isRefusal(wanted.err) {
				return wanted.err // from the store, which may retry the transaction
			}
		}
		return nil
	})
	for _, wanted := range changes {
		if err != nil {
			wanted.err = err
			c.logger.Error("a conversation could not be written to the store", "err", err)
		}
		close(wanted.done)
	}
}

// isRefusal reports whether err was returned by a change and is not a failure of the store.
func isRefusal(err error) bool {
	var running *runningError
	return errors.Is(err, ErrNotYours) || errors.Is(err, ErrUnknown) || errors.Is(err, errDamaged) ||
		errors.As(err, &running)
}

// inSavepoint applies one change, or nothing of it if it is refused.
func inSavepoint(ctx context.Context, tx *sql.Tx, write func(context.Context, *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	end := "RELEASE SAVEPOINT change"
	cause := write(ctx, tx)
	switch {
	case cause != nil && !isRefusal(cause):
		return cause // rolls back the transaction
	case cause != nil:
		end = "ROLLBACK TO SAVEPOINT change"
	}
	if _, err := tx.ExecContext(ctx, end); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	return cause
}

// close waits until all queued changes are committed.
func (c *committer) close() {
	close(c.wanted)
	<-c.done
}
