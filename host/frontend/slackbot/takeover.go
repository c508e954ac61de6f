package slackbot

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/hako-run/hako/host/store"
)

// lost has the open turns and questions of dead processes in a workspace.
type lost struct {
	waiting   []*message
	broken    []broken
	questions []posted
	// unread has the errors of rows that were skipped.
	unread []error
}

// broken is a turn that its process had begun.
type broken struct {
	message *message
	// answer is the timestamp of the message with the answer so far, or empty. cards are its open cards.
	answer string
	cards  []openCard
	// ending reports whether only the end of the message may be missing.
	ending bool
}

// posted is a message with a question to people.
type posted struct{ ID, Channel, TS string }

// takeOver takes over the rows of dead processes in the workspace.
func (j *journal) takeOver(ctx context.Context, workspace string) (*lost, error) {
	me, err := j.me()
	if err != nil {
		return nil, err
	}
	owners, err := store.List(ctx, j.store, store.Column[string],
		`SELECT DISTINCT owner FROM slack_turn WHERE workspace = $1 AND owner <> $2
		UNION SELECT owner FROM slack_question WHERE workspace = $1 AND owner <> $2`, workspace, me)
	if err != nil {
		return nil, err
	}
	found := &lost{}
	for _, owner := range owners {
		if err := j.takeOverFrom(ctx, found, workspace, owner, me); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// takeOverFrom takes over the rows of owner if it is dead.
func (j *journal) takeOverFrom(ctx context.Context, found *lost, workspace, owner, me string) error {
	release, err := j.store.LockDead(ctx, lockName(owner))
	if err != nil || release == nil {
		return err
	}
	defer release()
	var left *lost
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		left = new(lost) // reset, because Update may run this again
		if err := left.read(ctx, tx, workspace, owner); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE slack_turn SET owner = $1 WHERE workspace = $2 AND owner = $3`, me,
			workspace, owner); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE slack_question SET owner = $1 WHERE workspace = $2 AND owner = $3`, me,
			workspace, owner)
		return err
	})
	if err != nil {
		return err
	}
	found.waiting = append(found.waiting, left.waiting...)
	found.broken = append(found.broken, left.broken...)
	found.questions = append(found.questions, left.questions...)
	found.unread = append(found.unread, left.unread...)
	return nil
}

// read adds the rows of owner.
func (l *lost) read(ctx context.Context, tx *sql.Tx, workspace, owner string) error {
	turns, err := store.Select(ctx, tx, scanStoredTurn,
		`SELECT id, workspace, conversation, state, message, answer, cards FROM slack_turn WHERE workspace = $1 AND owner = $2`, workspace, owner)
	if err != nil {
		return err
	}
	for _, stored := range turns {
		t, err := stored.read()
		switch {
		case err != nil:
			l.unread = append(l.unread, err)
		case stored.state == stateWaiting:
			l.waiting = append(l.waiting, t.message)
		default:
			l.broken = append(l.broken, t)
		}
	}
	l.questions, err = store.Select(ctx, tx, scanPosted,
		`SELECT id, channel, ts FROM slack_question WHERE workspace = $1 AND owner = $2`, workspace, owner)
	return err
}

// storedTurn is the row of a turn.
type storedTurn struct{ id, workspace, conversation, state, message, answer, cards string }

func scanStoredTurn(rows *sql.Rows) (t storedTurn, err error) {
	err = rows.Scan(&t.id, &t.workspace, &t.conversation, &t.state, &t.message, &t.answer, &t.cards)
	return t, err
}

// read decodes the turn. It fails for an inconsistent row: its message cannot be read, or belongs to another row.
func (t *storedTurn) read() (broken, error) {
	b := broken{message: new(message), answer: t.answer, ending: t.state == stateEnding}
	err := json.Unmarshal([]byte(t.message), b.message)
	if err == nil && t.cards != "" {
		err = json.Unmarshal([]byte(t.cards), &b.cards)
	}
	if err != nil {
		return b, fmt.Errorf("the message %q of the journal: %w", t.id, err)
	}
	m := b.message
	if t.id == m.oldID() {
		m.row = t.id
	}
	if m.id() != t.id || m.Workspace != t.workspace || m.conversation() != t.conversation {
		return b, fmt.Errorf("the message %q of the journal was changed, or belongs to another row", t.id)
	}
	return b, nil
}

func scanPosted(rows *sql.Rows) (p posted, err error) {
	err = rows.Scan(&p.ID, &p.Channel, &p.TS)
	return p, err
}
