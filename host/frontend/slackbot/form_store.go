package slackbot

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/store"
)

// askForm stores a question of the turn of m, and postedForm its message.
func (j *journal) askForm(ctx context.Context, id string, m *message, f *storedForm, expires time.Time) error {
	encoded, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return j.exec(ctx, `INSERT INTO slack_form (id, turn, question, answer, expires) VALUES ($1, $2, $3, '', $4)`, id,
		m.id(), string(encoded), expires.UnixMilli())
}

func (j *journal) postedForm(ctx context.Context, id, ts string) error {
	return j.exec(ctx, `UPDATE slack_form SET ts = $1 WHERE id = $2`, ts, id)
}

// leftForm is a question of a turn that is over. TS is the timestamp of its message, or empty.
type leftForm struct {
	storedForm
	ts string
}

// takeForms removes and returns the questions of a turn that is over.
func (j *journal) takeForms(ctx context.Context, m *message) ([]leftForm, error) {
	left, err := store.List(ctx, j.store, func(rows *sql.Rows) (f leftForm, err error) {
		var text string
		err = errors.Join(rows.Scan(&text, &f.ts), json.Unmarshal([]byte(text), &f.storedForm))
		return f, err
	}, `SELECT question, ts FROM slack_form WHERE turn = $1`, m.id())
	return left, errors.Join(err, j.exec(ctx, `DELETE FROM slack_form WHERE turn = $1`, m.id()))
}

// form returns a waiting question, or nil.
func (j *journal) form(ctx context.Context, id string) (*storedForm, error) {
	var text string
	err := j.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT question FROM slack_form WHERE id = $1 AND answer = '' AND expires > $2`,
			id, j.store.Time().UnixMilli()).Scan(&text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := new(storedForm)
	return f, json.Unmarshal([]byte(text), f)
}

// answerForm stores an answer. It reports whether it is the first one and in time.
func (j *journal) answerForm(ctx context.Context, id string, answer elicitation.Answer) (first bool, err error) {
	encoded, err := json.Marshal(answer)
	if err != nil {
		return false, err
	}
	err = j.change(ctx, func(ctx context.Context, tx *sql.Tx, _ string) error {
		n, err := affected(tx.ExecContext(ctx,
			`UPDATE slack_form SET answer = $1 WHERE id = $2 AND answer = '' AND expires > $3`,
			string(encoded), id, j.store.Time().UnixMilli()))
		first = n > 0
		return err
	})
	return first && err == nil, err
}

// awaitForm waits for the answer, which another process may receive.
func (j *journal) awaitForm(ctx context.Context, id string, wake <-chan struct{}) (answer elicitation.Answer,
	err error) {
	ticker := time.NewTicker(questionPoll)
	defer ticker.Stop()
	for {
		var text string
		err := j.store.View(ctx, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, `SELECT answer FROM slack_form WHERE id = $1`, id).Scan(&text)
		})
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &answer)
			return answer, err
		}
		if errors.Is(err, sql.ErrNoRows) {
			return answer, err
		}
		select { // other errors are the store's and may pass
		case <-wake:
		case <-ticker.C:
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
}

// closeForm removes a question and its answer.
func (j *journal) closeForm(ctx context.Context, id string) error {
	return j.exec(ctx, `DELETE FROM slack_form WHERE id = $1`, id)
}
