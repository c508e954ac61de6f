package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/host/store"
)

// committer writes for many turns at once: those that want to write while the disk is busy share the next transaction. A hundred
// conversations then wait for a few writes and not for a hundred.
type committer struct {
	store  *store.Store
	logger *slog.Logger
	wanted chan *change
	done   chan struct{}
}

// change is what one turn wants to write.
type change struct {
	write func(context.Context, *sql.Tx) error
	err   error
	done  chan struct{} // closed once err is known
}

// maxShared is how many changes share a transaction.
const maxShared = 256

func newCommitter(s *store.Store, logger *slog.Logger) *committer {
	c := &committer{s, logger, make(chan *change, maxShared), make(chan struct{})}
	go c.run()
	return c
}

// write makes the change in a transaction with others, and waits until it is on the disk. A refusal leaves the others alone; an error of the
// store is all of theirs. The change may be made more than once.
func (c *committer) write(write func(context.Context, *sql.Tx) error) error {
	wanted := c.later(write)
	<-wanted.done
	return wanted.err
}

// later makes the change before all that are wanted after it. Its error is logged.
func (c *committer) later(write func(context.Context, *sql.Tx) error) *change {
	wanted := &change{write: write, done: make(chan struct{})}
	c.wanted <- wanted
	return wanted
}

// run commits until close, and what was wanted before then.
func (c *committer) run() {
	defer close(c.done)
	for first := range c.wanted {
		c.commit(c.shared([]*change{first}))
	}
}

// shared adds what else is wanted by now.
func (c *committer) shared(changes []*change) []*change {
	for len(changes) < maxShared {
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
	// A turn that was cancelled is written down too, so this has a context of its own.
	ctx := context.Background()
	err := c.store.Update(ctx, func(tx *sql.Tx) error {
		for _, wanted := range changes {
			if wanted.err = within(ctx, tx, wanted.write); wanted.err != nil && !isRefusal(wanted.err) {
				return wanted.err // the store's, which may run all of this again
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

// isRefusal reports an error that is a change's own, and no failure of the store.
func isRefusal(err error) bool {
	var running *runningError
	return errors.Is(err, ErrNotYours) || errors.Is(err, ErrUnknown) || errors.As(err, &running)
}

// within makes one change, or none of it.
func within(ctx context.Context, tx *sql.Tx, write func(context.Context, *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT change"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	end := "RELEASE SAVEPOINT change"
	cause := write(ctx, tx)
	switch {
	case cause != nil && !isRefusal(cause):
		return cause // the transaction ends
	case cause != nil:
		end = "ROLLBACK TO SAVEPOINT change"
	}
	if _, err := tx.ExecContext(ctx, end); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	return cause
}

// close waits until all is written.
func (c *committer) close() {
	close(c.wanted)
	<-c.done
}
