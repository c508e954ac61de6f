package slackbot

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
)

// lost is what a process that died has left open in a workspace.
type lost struct {
	waiting   []*message
	broken    []broken
	questions []posted
}

// broken is a turn that its process had begun.
type broken struct {
	message *message
	// answer is the timestamp of the message that holds the answer so far, or empty; cards are those in it that were not done.
	answer string
	cards  []openCard
	// ending says that only the end of the message may be missing.
	ending bool
}

// posted is a message that asks people.
type posted struct{ ID, Channel, TS string }

// adopt takes over what processes that have died have left in the workspace.
func (j *journal) adopt(ctx context.Context, workspace string) (*lost, error) {
	me, err := j.me()
	if err != nil {
		return nil, err
	}
	owners, err := store.List(ctx, j.store, store.Column[string], `SELECT DISTINCT owner FROM slack_turn WHERE workspace = $1 AND owner <> $2
		UNION SELECT owner FROM slack_question WHERE workspace = $1 AND owner <> $2`, workspace, me)
	if err != nil {
		return nil, err
	}
	found := &lost{}
	for _, owner := range owners {
		if err := j.adoptFrom(ctx, found, workspace, owner, me); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// lockTry is how long it takes at most to see that a process lives.
const lockTry = 50 * time.Millisecond

// adoptFrom takes over what owner has left, if it is dead.
func (j *journal) adoptFrom(ctx context.Context, found *lost, workspace, owner, me string) error {
	trying, cancel := context.WithTimeout(ctx, lockTry)
	defer cancel()
	_, release, err := j.store.Lock(trying, lockName(owner))
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	var left *lost
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		left = new(lost)
		if err := left.read(ctx, tx, workspace, owner); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE slack_turn SET owner = $1 WHERE workspace = $2 AND owner = $3`, me, workspace, owner); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE slack_question SET owner = $1 WHERE workspace = $2 AND owner = $3`, me, workspace, owner)
		return err
	})
	if err != nil {
		return err
	}
	found.waiting = append(found.waiting, left.waiting...)
	found.broken = append(found.broken, left.broken...)
	found.questions = append(found.questions, left.questions...)
	return nil
}

// read adds the rows of owner.
func (l *lost) read(ctx context.Context, tx *sql.Tx, workspace, owner string) error {
	turns, err := store.Select(ctx, tx, scanEntry, `SELECT state, message, answer, cards FROM slack_turn WHERE workspace = $1 AND owner = $2`, workspace, owner)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.state == stateWaiting {
			l.waiting = append(l.waiting, t.message)
			continue
		}
		t.ending = t.state == stateEnding
		l.broken = append(l.broken, t.broken)
	}
	l.questions, err = store.Select(ctx, tx, scanPosted, `SELECT id, channel, ts FROM slack_question WHERE workspace = $1 AND owner = $2`, workspace, owner)
	return err
}

// entry is a turn in the journal, with its state there.
type entry struct {
	broken
	state string
}

func scanEntry(rows *sql.Rows) (t entry, err error) {
	var text, cards string
	t.message = new(message)
	err = errors.Join(rows.Scan(&t.state, &text, &t.answer, &cards), json.Unmarshal([]byte(text), t.message))
	if err == nil && cards != "" {
		err = json.Unmarshal([]byte(cards), &t.cards)
	}
	if err != nil {
		return t, fmt.Errorf("a message of the journal: %w", err)
	}
	return t, nil
}

func scanPosted(rows *sql.Rows) (p posted, err error) {
	err = rows.Scan(&p.ID, &p.Channel, &p.TS)
	return p, err
}
