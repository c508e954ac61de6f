package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
)

// migrations are the migrations of the tables. Released ones must not change.
var migrations = []string{`CREATE TABLE approval (
	id TEXT PRIMARY KEY,
	binding TEXT NOT NULL,
	tenant TEXT NOT NULL,
	question TEXT NOT NULL,
	state TEXT NOT NULL,
	answered_by TEXT NOT NULL,
	expires BIGINT NOT NULL,
	valid_until BIGINT NOT NULL
);
CREATE INDEX approval_binding ON approval (binding, state);
CREATE INDEX approval_expires ON approval (state, expires)`,
	`CREATE TABLE approval_watch (id TEXT PRIMARY KEY, seen BIGINT NOT NULL)`}

// States of a question. A waiting one is answered yes or no; a yes that is not remembered is then used by its call.
const (
	stateWaiting   = "waiting"
	stateYes       = "yes"
	stateNo        = "no"
	stateUsed      = "used"
	stateExpired   = "expired"
	stateWithdrawn = "withdrawn"
)

// retention is the time for which ended questions are kept.
const retention = 24 * time.Hour

// errWaiting means that a question has no answer yet.
var errWaiting = errors.New("no answer yet")

func (d *Queue) insert(ctx context.Context, q *Question) error {
	encoded, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO approval (id, binding, tenant, question, state, answered_by, expires, valid_until)
			VALUES ($1, $2, $3, $4, $5, '', $6, 0)`, q.ID, q.Binding(), q.Caller.Tenant, string(encoded), stateWaiting,
			q.Expires.UnixMilli())
		return err
	})
}

// Forget deletes questions that ended longer than retention ago. One of the replicas should call it regularly. Errors
// are the store's.
func (d *Queue) Forget(ctx context.Context) error {
	before := d.options.Now().Add(-retention).UnixMilli()
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM approval WHERE expires < $1 AND valid_until < $1`, before)
		return err
	})
}

// recordAnswer stores the first answer.
func (d *Queue) recordAnswer(ctx context.Context, q *Question, a Answer) error {
	state, until := stateNo, int64(0)
	now := d.options.Now()
	if a.Yes {
		state, until = stateYes, now.Add(q.Remember).UnixMilli()
	}
	return d.updateOne(ctx,
		`UPDATE approval SET state = $1, answered_by = $2, valid_until = $3 WHERE id = $4 AND state = $5 AND expires > $6`,
		state, a.By.User, until, q.ID, stateWaiting, now.UnixMilli())
}

// endWaiting ends a waiting question without an answer.
func (d *Queue) endWaiting(ctx context.Context, id, state string) error {
	err := d.updateOne(ctx, `UPDATE approval SET state = $1 WHERE id = $2 AND state = $3`, state, id, stateWaiting)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// updateOne updates one row, or fails with ErrUnknown.
func (d *Queue) updateOne(ctx context.Context, query string, args ...any) error {
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return ErrUnknown
	})
}

// claimAnswer returns the answer to q. It fails with errWaiting if there is none, and with ErrOther if the row is about
// another call.
func (d *Queue) claimAnswer(ctx context.Context, q *Question) (by string, err error) {
	var state, binding string
	var until int64
	err = d.store.View(ctx, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `SELECT state, answered_by, valid_until, binding FROM approval WHERE id = $1`,
			q.ID)
		return row.Scan(&state, &by, &until, &binding)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", ErrUnknown
	case err != nil:
		return "", err
	case binding != q.Binding():
		return "", ErrOther
	}
	switch state {
	case stateWaiting:
		return "", errWaiting
	case stateNo:
		return "", &RefusedError{by}
	case stateExpired:
		return "", ErrExpired
	case stateYes:
		return by, d.consume(ctx, q.ID, until, q.Remember)
	}
	return "", ErrUnknown
}

// consume marks a yes as used, unless it is remembered until a time in milliseconds. It validates the row first.
func (d *Queue) consume(ctx context.Context, id string, until int64, remember time.Duration) error {
	_, err := d.Question(ctx, id)
	switch {
	case err != nil:
		return err
	case remember > 0 && until <= d.options.Now().UnixMilli():
		return ErrExpired
	case remember > 0:
		return nil
	}
	return d.updateOne(ctx, `UPDATE approval SET state = $1 WHERE id = $2 AND state = $3`, stateUsed, id, stateYes)
}

// remembered looks for a valid yes to the same call.
func (d *Queue) remembered(ctx context.Context, q *Question) (by string, ok bool, err error) {
	if q.Remember == 0 {
		return "", false, nil
	}
	err = d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx,
			`SELECT answered_by FROM approval WHERE binding = $1 AND state = $2 AND valid_until > $3 LIMIT 1`,
			q.Binding(), stateYes, d.options.Now().UnixMilli()).Scan(&by)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return by, err == nil, err
}

// Question returns a question. It fails with ErrUnknown, for an inconsistent row, or with the store's error.
func (d *Queue) Question(ctx context.Context, id string) (*Question, error) {
	s := storedQuestion{id: id}
	err := d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT binding, tenant, question FROM approval WHERE id = $1`,
			id).Scan(&s.binding, &s.tenant, &s.text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	q, current, err := s.decode()
	if !current {
		err = errors.Join(err, d.endWaiting(ctx, id, stateExpired))
	}
	return q, err
}

// parse decodes a stored question. It is not current if it can no longer be answered: if it is damaged, which leaves it
// without an ID, or if it is of a version that did not distinguish users and groups among the approvers.
func parse(text string) (q *Question, current bool) {
	q = new(Question)
	err := json.Unmarshal([]byte(text), q)
	if mistyped := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &mistyped) {
		q = new(Question)
	}
	return q, err == nil
}

// Waiting returns the waiting questions of a tenant, or of all if tenant is nil, oldest first. Inconsistent rows are
// left out. Errors are the store's.
func (d *Queue) Waiting(ctx context.Context, tenant *string) ([]*Question, error) {
	rows, err := store.List(ctx, d.store, scanStored,
		`SELECT id, binding, tenant, question FROM approval WHERE state = $1 AND expires > $2
		ORDER BY expires, id`, stateWaiting, d.options.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	var list []*Question
	for _, r := range rows {
		q, current, err := r.decode()
		if !current {
			if err := d.endWaiting(ctx, r.id, stateExpired); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil && (tenant == nil || *tenant == q.Caller.Tenant) {
			list = append(list, q)
		}
	}
	return list, nil
}

// storedQuestion is the row of a question.
type storedQuestion struct{ id, binding, tenant, text string }

func scanStored(rows *sql.Rows) (s storedQuestion, err error) {
	err = rows.Scan(&s.id, &s.binding, &s.tenant, &s.text)
	return s, err
}

// decode decodes the question like parse, and fails for an inconsistent row: it cannot be decoded, or belongs to
// another question.
func (s *storedQuestion) decode() (q *Question, current bool, err error) {
	q, current = parse(s.text)
	switch {
	case q.ID == "":
		err = fmt.Errorf("approval %s cannot be read: %w", s.id, ErrUnknown)
	case current && (q.ID != s.id || q.Caller.Tenant != s.tenant || q.Binding() != s.binding):
		return nil, true, fmt.Errorf("approval %s: the question in the store was changed, or belongs to another "+
			"approval: ask again", s.id)
	}
	return q, current, err
}
