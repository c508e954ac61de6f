package slackbot

import (
	"context"
	"database/sql"
	"errors"
)

// change is something that wants to be written to the journal, as the process of that name.
type change struct {
	write func(ctx context.Context, tx *sql.Tx, me string) error
	done  chan error
}

// mostChanges is how many go into one transaction. A transaction waits for the disk, and events come in bursts.
const mostChanges = 256

// errClosed is for what comes when the process has said its last words.
var errClosed = errors.New("hako is shutting down")

// change writes to the journal, in a transaction with what others want to write, and returns once it is on the disk. An
// error is all of theirs: it is the store's. write may be called more than once.
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

// commit writes changes down until ctx ends.
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
	ctx := context.Background() // what is told is written down, whoever waits for it
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		for _, c := range batch {
			if err := c.write(ctx, tx, me); err != nil {
				return err
			}
		}
		return nil
	})
}
