package slackbot

import (
	"context"
	"database/sql"
	"errors"
)

// change is a write to the journal under a process's name.
type change struct {
	write func(ctx context.Context, tx *sql.Tx, me string) error
	done  chan error
}

// mostChanges bounds the changes in one transaction. A transaction waits for the disk, and events come in bursts.
const mostChanges = 256

// errClosed is the error of changes after the shutdown.
var errClosed = errors.New("hako is shutting down")

// change writes to the journal, in one transaction with other changes, and returns when it is on the disk. An error is
// the store's and fails all of them. write may be called more than once.
func (j *journal) change(ctx context.Context, write func(context.Context, *sql.Tx, string) error) error {
	c := &change{write, make(chan error, 1)}
	select {
	case j.changes <- c:
		return <-c.done
	case <-j.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commit writes changes until ctx ends.
func (j *journal) commit(ctx context.Context) {
	defer close(j.done)
	for {
		var batch []*change
		select {
		case c := <-j.changes:
			batch = append(batch, c)
		case <-ctx.Done():
			return
		}
		for more := true; more && len(batch) < mostChanges; {
			select {
			case c := <-j.changes:
				batch = append(batch, c)
			default:
				more = false
			}
		}
		err := j.write(batch)
		for _, c := range batch {
			c.done <- err
		}
	}
}

func (j *journal) write(batch []*change) error {
	me, err := j.me()
	if err != nil {
		return err
	}
	ctx := context.Background() // changes are written whether or not somebody waits
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		for _, c := range batch {
			if err := c.write(ctx, tx, me); err != nil {
				return err
			}
		}
		return nil
	})
}
