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

// migrations are the steps of the tables. Those that were released never change.
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

// States of a question. One that waits is answered yes or no; a yes that is not remembered is then used by its call.
const (
	stateWaiting   = "waiting"
	stateYes       = "yes"
	stateNo        = "no"
	stateUsed      = "used"
	stateExpired   = "expired"
	stateWithdrawn = "withdrawn"
)

// keep is how long questions that have ended stay.
const keep = 24 * time.Hour

// errWaiting says that a question has no answer yet.
var errWaiting = errors.New("no answer yet")

func (d *Desk) insert(ctx context.Context, q *Question) error {
	encoded, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO approval (id, binding, tenant, question, state, answered_by, expires, valid_until)
			VALUES ($1, $2, $3, $4, $5, '', $6, 0)`, q.ID, q.binding(), q.Caller.Tenant, string(encoded), stateWaiting, q.Expires.UnixMilli())
		return err
	})
}

// Forget deletes questions that ended more than a day ago. One of the processes over the store calls it from time to time. Errors are the
// store's.
func (d *Desk) Forget(ctx context.Context) error {
	before := d.options.Now().Add(-keep).UnixMilli()
	return d.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM approval WHERE expires < $1 AND valid_until < $1`, before)
		return err
	})
}

// record writes the first answer down.
func (d *Desk) record(ctx context.Context, q *Question, a Answer) error {
	state, until := stateNo, int64(0)
	now := d.options.Now()
	if a.Yes {
		state, until = stateYes, now.Add(q.Remember).UnixMilli()
	}
	return d.change(ctx, `UPDATE approval SET state = $1, answered_by = $2, valid_until = $3 WHERE id = $4 AND state = $5 AND expires > $6`,
		state, a.By.User, until, q.ID, stateWaiting, now.UnixMilli())
}

// end ends a question without an answer, if it has none.
func (d *Desk) end(ctx context.Context, id, state string) error {
	err := d.change(ctx, `UPDATE approval SET state = $1 WHERE id = $2 AND state = $3`, state, id, stateWaiting)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// change makes a change to one question, or fails with ErrUnknown.
func (d *Desk) change(ctx context.Context, query string, args ...any) error {
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

// claim takes the answer to the question with this ID for asker, the one call that it was about. It fails with errWaiting without one, and
// with ErrOther if the store has another question under the ID.
func (d *Desk) claim(ctx context.Context, id string, asker *Question) (by string, err error) {
	var state, binding string
	var until int64
	err = d.store.View(ctx, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `SELECT state, answered_by, valid_until, binding FROM approval WHERE id = $1`, id)
		return row.Scan(&state, &by, &until, &binding)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", ErrUnknown
	case err != nil:
		return "", err
	case binding != asker.binding():
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
		return by, d.use(ctx, id, until, asker.Remember)
	}
	return "", ErrUnknown
}

// use uses a yes up, unless it is remembered for so long: until then, in milliseconds. The row has to agree with itself.
func (d *Desk) use(ctx context.Context, id string, until int64, remember time.Duration) error {
	_, err := d.Question(ctx, id)
	switch {
	case err != nil:
		return err
	case remember > 0 && until <= d.options.Now().UnixMilli():
		return ErrExpired
	case remember > 0:
		return nil
	}
	return d.change(ctx, `UPDATE approval SET state = $1 WHERE id = $2 AND state = $3`, stateUsed, id, stateYes)
}

// remembered looks for a yes to the very same call that still holds.
func (d *Desk) remembered(ctx context.Context, q *Question) (by string, ok bool, err error) {
	if q.Remember == 0 {
		return "", false, nil
	}
	err = d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT answered_by FROM approval WHERE binding = $1 AND state = $2 AND valid_until > $3 LIMIT 1`,
			q.binding(), stateYes, d.options.Now().UnixMilli()).Scan(&by)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return by, err == nil, err
}

// Question returns a question. It fails with ErrUnknown, for a row that does not agree with itself, or with the store's error.
func (d *Desk) Question(ctx context.Context, id string) (*Question, error) {
	s := stored{id: id}
	err := d.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT binding, tenant, question FROM approval WHERE id = $1`, id).Scan(&s.binding, &s.tenant, &s.text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	q, current, err := s.read()
	if !current {
		err = errors.Join(err, d.end(ctx, id, stateExpired))
	}
	return q, err
}

// parse reads a question as it lies in the store. It is not current if it cannot be answered any more: if it is damaged, which leaves it without
// an ID, or of a version that had one list of approvers, of whom nobody can say which are people and which are groups.
func parse(text string) (q *Question, current bool) {
	q = new(Question)
	err := json.Unmarshal([]byte(text), q)
	if mistyped := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &mistyped) {
		q = new(Question)
	}
	return q, err == nil
}

// Waiting lists the questions that wait for an answer, oldest first; of one tenant, or with tenant nil of all. A row that does not agree with
// itself is left out. Errors are the store's.
func (d *Desk) Waiting(ctx context.Context, tenant *string) ([]*Question, error) {
	rows, err := store.List(ctx, d.store, scanStored, `SELECT id, binding, tenant, question FROM approval WHERE state = $1 AND expires > $2
		ORDER BY expires, id`, stateWaiting, d.options.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	var list []*Question
	for _, r := range rows {
		q, current, err := r.read()
		if !current {
			if err := d.end(ctx, r.id, stateExpired); err != nil {
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

// stored is a question as its row has it.
type stored struct{ id, binding, tenant, text string }

func scanStored(rows *sql.Rows) (s stored, err error) {
	err = rows.Scan(&s.id, &s.binding, &s.tenant, &s.text)
	return s, err
}

// read reads the question, as parse does. It fails for a row that does not agree with itself: its question cannot be read, or is another
// row's.
func (s *stored) read() (q *Question, current bool, err error) {
	q, current = parse(s.text)
	switch {
	case q.ID == "":
		err = fmt.Errorf("approval %s cannot be read: %w", s.id, ErrUnknown)
	case current && (q.ID != s.id || q.Caller.Tenant != s.tenant || q.binding() != s.binding):
		return nil, true, fmt.Errorf("approval %s: the question in the store was changed, or is another one's: ask again", s.id)
	}
	return q, current, err
}
