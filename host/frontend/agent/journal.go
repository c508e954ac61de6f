package agent

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/hako-run/hako/host/store"
)

// migrations are the steps of the tables. Those that were released never change.
var migrations = []string{`CREATE TABLE agent_call (
	session TEXT NOT NULL,
	id TEXT NOT NULL,
	owner TEXT NOT NULL,
	tool TEXT NOT NULL,
	state TEXT NOT NULL,
	answer TEXT NOT NULL,
	taken BIGINT NOT NULL,
	changed BIGINT NOT NULL,
	PRIMARY KEY (session, id)
);
CREATE INDEX agent_call_changed ON agent_call (changed)`}

// State is the state of a call in the journal.
type State string

// States of a call, in their order.
const (
	StateTaken    State = "taken"    // claimed by a process; the tool has not started, people may be asked
	StateRunning  State = "running"  // the tool runs
	StateAnswered State = "answered" // the answer is not sent yet
	StateSent     State = "sent"     // the agent has the answer
	StateDropped  State = "dropped"  // no longer wanted: interrupted, or the session has ended
)

// retention is the time for which the journal keeps ended calls. The session itself shows which calls are answered.
const retention = 30 * 24 * time.Hour

// journal records the owner and the state of calls. It is written before a tool runs, so that none runs twice. The
// owner is a process that holds the lock of its name. When it dies, the lock becomes free and another process takes
// over the row.
type journal struct {
	store   *store.Store
	owner   string
	release func()
}

func openJournal(ctx context.Context, s *store.Store) (*journal, error) {
	if err := s.Migrate(ctx, "agent", migrations...); err != nil {
		return nil, err
	}
	return &journal{store: s, owner: rand.Text()}, nil
}

func lockName(owner string) string { return "agent-" + owner }

// begin acquires the owner's lock. The context ends when the lock, and so the ownership of calls, is lost.
func (j *journal) begin(ctx context.Context) (held context.Context, err error) {
	held, j.release, err = j.store.Lock(ctx, lockName(j.owner))
	return held, err
}

func (j *journal) end() { j.release() }

// entry is a row of the journal.
type entry struct {
	owner  string
	state  State
	answer *answer // of StateAnswered
}

// errElsewhere means that another process owns the call.
var errElsewhere = errors.New("another process has this call")

// claim makes this process the owner of a call, also of one whose owner has died, and returns its row. It fails with
// errElsewhere while another owner lives, or with the store's error.
func (j *journal) claim(ctx context.Context, session, id, tool string) (*entry, error) {
	e, err := j.insert(ctx, session, id, tool)
	if err != nil || e.owner == j.owner || e.state == StateSent || e.state == StateDropped {
		return e, err
	}
	release, err := j.store.LockDead(ctx, lockName(e.owner))
	if err != nil {
		return nil, err
	}
	if release == nil {
		return nil, errElsewhere
	}
	defer release()
	return j.takeOver(ctx, session, id, e.owner)
}

// insert adds a row for the call unless there is one, and returns the row.
func (j *journal) insert(ctx context.Context, session, id, tool string) (e *entry, err error) {
	now := j.store.Time().UnixMilli()
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO agent_call (session, id, owner, tool, state, answer, taken, changed)
			VALUES ($1, $2, $3, $4, $5, '', $6, $6) ON CONFLICT (session, id) DO NOTHING`, session, id, j.owner, tool,
			StateTaken, now)
		if err != nil {
			return err
		}
		e, err = read(ctx, tx, session, id)
		return err
	})
	return e, err
}

// takeOver changes the owner of a dead owner's call. Callers hold that owner's lock.
func (j *journal) takeOver(ctx context.Context, session, id, owner string) (e *entry, err error) {
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE agent_call SET owner = $1 WHERE session = $2 AND id = $3 AND owner = $4`,
			j.owner, session, id, owner)
		if err != nil {
			return err
		}
		e, err = read(ctx, tx, session, id)
		return err
	})
	if err == nil && e.owner != j.owner {
		return nil, errElsewhere // another process was faster
	}
	return e, err
}

// read reads a call. A call with an unknown state or an unreadable answer may have run, so it is reported as running.
func read(ctx context.Context, tx *sql.Tx, session, id string) (*entry, error) {
	e, text := new(entry), ""
	err := tx.QueryRowContext(ctx, `SELECT owner, state, answer FROM agent_call WHERE session = $1 AND id = $2`,
		session, id).Scan(&e.owner, &e.state, &text)
	if err != nil || e.state == StateTaken || e.state == StateRunning || e.state == StateSent ||
		e.state == StateDropped {
		return e, err
	}
	e.answer = new(answer)
	if e.state != StateAnswered || json.Unmarshal([]byte(text), e.answer) != nil {
		e.state, e.answer = StateRunning, nil
	}
	return e, nil
}

// move sets the state of a call that this process owns. The answer is stored only with StateAnswered. StateSent is
// final: a session that is followed again may begin a call once more before it learns that the call has been answered.
// changed is false if the answer was already sent or this process does not own the call.
func (j *journal) move(ctx context.Context, session, id string, state State, a *answer) (changed bool, err error) {
	text := ""
	if a != nil {
		encoded, err := json.Marshal(a)
		if err != nil {
			return false, err
		}
		text = string(encoded)
	}
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE agent_call SET state = $1, answer = $2, changed = $3
			WHERE session = $4 AND id = $5 AND owner = $6 AND state <> $7`,
			state, text, j.store.Time().UnixMilli(), session, id, j.owner, StateSent)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		changed = rows > 0
		return err
	})
	return changed, err
}

// releaseCall gives up the ownership of a call.
func (j *journal) releaseCall(ctx context.Context, session, id string) error {
	return j.exec(ctx, `UPDATE agent_call SET owner = '' WHERE session = $1 AND id = $2 AND owner = $3`,
		session, id, j.owner)
}

// drop sets all open calls of an ended session to StateDropped, whoever owns them.
func (j *journal) drop(ctx context.Context, session string) error {
	return j.exec(
		ctx, `UPDATE agent_call SET state = $1, answer = '', changed = $2 WHERE session = $3 AND state NOT IN ($1, $4)`,
		StateDropped, j.store.Time().UnixMilli(), session, StateSent)
}

// forget removes calls that ended longer ago than retention.
func (j *journal) forget(ctx context.Context) error {
	return j.exec(ctx, `DELETE FROM agent_call WHERE changed < $1 AND state IN ($2, $3)`,
		j.store.Time().Add(-retention).UnixMilli(), StateSent, StateDropped)
}

func (j *journal) exec(ctx context.Context, query string, args ...any) error {
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}
