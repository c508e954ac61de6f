package slackbot

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// migrations are the migrations of the tables. Released ones must not change.
var migrations = []string{`CREATE TABLE slack_event (id TEXT PRIMARY KEY, seen BIGINT NOT NULL);
CREATE INDEX slack_event_seen ON slack_event (seen);
CREATE TABLE slack_turn (
	id TEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	workspace TEXT NOT NULL,
	conversation TEXT NOT NULL,
	state TEXT NOT NULL,
	message TEXT NOT NULL,
	answer TEXT NOT NULL,
	stopped_by TEXT NOT NULL
);
CREATE INDEX slack_turn_owner ON slack_turn (owner);
CREATE TABLE slack_question (
	id TEXT NOT NULL,
	owner TEXT NOT NULL,
	workspace TEXT NOT NULL,
	channel TEXT NOT NULL,
	ts TEXT NOT NULL,
	PRIMARY KEY (id, channel, ts)
);
CREATE TABLE slack_thread (conversation TEXT PRIMARY KEY, seen TEXT NOT NULL, used BIGINT NOT NULL)`,
	`ALTER TABLE slack_turn ADD COLUMN cards TEXT NOT NULL DEFAULT ''`,
	`CREATE TABLE slack_form (id TEXT PRIMARY KEY, question TEXT NOT NULL, answer TEXT NOT NULL, expires BIGINT NOT NULL)`,
	`ALTER TABLE slack_form ADD COLUMN turn TEXT NOT NULL DEFAULT '';
ALTER TABLE slack_form ADD COLUMN ts TEXT NOT NULL DEFAULT '';
CREATE INDEX slack_form_turn ON slack_form (turn)`}

// States of a turn in the journal. A turn that has ended is not in it.
const (
	stateWaiting = "waiting"
	stateRunning = "running"
	stateEnding  = "ending" // all is said, but for the end of the message
)

// Retention times.
const (
	// eventTime is longer than Slack repeats an event (docs.slack.dev/apis/events-api: three times within about an
	// hour).
	eventTime = 24 * time.Hour
	// threadTime is the time for which the bot remembers what it has read of a thread.
	threadTime = 90 * 24 * time.Hour
)

// journal stores what must outlive the process: which events were handled, and which turns and questions are open. Each
// row has an owner, a process that holds the lock with that name. When the process dies, the store releases the lock
// and another process takes the rows over. A process changes only its own rows, so a process that was presumed dead
// cannot continue with rows that were taken over.
type journal struct {
	store   *store.Store
	changes chan *change
	done    chan struct{} // closed when no more changes are accepted

	mu      sync.Mutex // guards the fields below
	owner   string     // empty while no lock is held
	release func()
}

func openJournal(ctx context.Context, s *store.Store) (*journal, error) {
	if err := s.Migrate(ctx, "slack", migrations...); err != nil {
		return nil, err
	}
	return &journal{store: s, changes: make(chan *change), done: make(chan struct{}), release: func() {}}, nil
}

func lockName(owner string) string { return "slack-" + owner }

// live makes this process an owner of rows, under a new name. held ends when the store has lost the lock.
func (j *journal) live(ctx context.Context) (held context.Context, err error) {
	owner := rand.Text()
	held, release, err := j.store.Lock(ctx, lockName(owner))
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owner, j.release = owner, release
	return held, nil
}

// end releases this process's lock, so that others take its rows over.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release()
	j.owner, j.release = "", func() {}
}

// errDead is the error of a process that may be presumed dead.
var errDead = errors.New("the store lost this process's lock: acquiring it again")

// me returns the owner name of this process, or an error if it has no lock.
func (j *journal) me() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.owner == "" {
		return "", errDead
	}
	return j.owner, nil
}

// claim stores an event and its message, before the event is acknowledged. It reports false for an event that this or
// another replica has stored before.
func (j *journal) claim(ctx context.Context, id string, m *message) (fresh bool, err error) {
	now, tries := j.store.Time().UnixMilli(), 0
	err = j.change(ctx, func(ctx context.Context, tx *sql.Tx, me string) error {
		n, err := affected(tx.ExecContext(ctx,
			`INSERT INTO slack_event (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, now))
		if err != nil {
			return err
		}
		fresh = n == 1
		switch tries++; {
		case fresh && m != nil:
			return insert(ctx, tx, me, m)
		case !fresh && m != nil && tries > 1: // what was tried before may be there, though the store could not say so
			fresh, err = waits(ctx, tx, me, m)
		}
		return err
	})
	return fresh, err
}

// waits reports whether the message waits for this process.
func waits(ctx context.Context, tx *sql.Tx, me string, m *message) (bool, error) {
	var n int
	err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM slack_turn WHERE id = $1 AND owner = $2 AND state = $3`,
		m.id(), me, stateWaiting).Scan(&n)
	return n > 0, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func insert(ctx context.Context, tx *sql.Tx, owner string, m *message) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO slack_turn
			(id, owner, workspace, conversation, state, message, answer, stopped_by)
		VALUES ($1, $2, $3, $4, $5, $6, '', '')
		ON CONFLICT (id) DO NOTHING`, m.id(), owner, m.Workspace, m.conversation(), stateWaiting, string(encoded))
	return err
}

func (j *journal) exec(ctx context.Context, query string, args ...any) error {
	return j.change(ctx, func(ctx context.Context, tx *sql.Tx, _ string) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}

// started records that the turn runs. It reports false if another process owns the turn.
func (j *journal) started(ctx context.Context, m *message) (mine bool, err error) {
	err = j.change(ctx, func(ctx context.Context, tx *sql.Tx, me string) error {
		n, err := affected(tx.ExecContext(ctx, `UPDATE slack_turn SET state = $1 WHERE id = $2 AND owner = $3`,
			stateRunning, m.id(), me))
		mine = n > 0
		return err
	})
	return mine, err
}

// answering records the message with the answer so far, and its open cards.
func (j *journal) answering(ctx context.Context, m *message, ts, cards string) error {
	return j.mine(ctx, `UPDATE slack_turn SET answer = $1, cards = $2 WHERE id = $3 AND owner = $4`, ts, cards, m.id())
}

// ending records that the answer is complete, in the message with that timestamp, which is then closed.
func (j *journal) ending(ctx context.Context, m *message, ts string) error {
	return j.mine(ctx, `UPDATE slack_turn SET state = $1, answer = $2, cards = '' WHERE id = $3 AND owner = $4`,
		stateEnding, ts, m.id())
}

// owns fails unless this process owns the turn.
func (j *journal) owns(ctx context.Context, m *message) error {
	return j.mine(ctx, `UPDATE slack_turn SET state = state WHERE id = $1 AND owner = $2`, m.id())
}

// ended removes the turn.
func (j *journal) ended(ctx context.Context, m *message) error {
	return j.mine(ctx, `DELETE FROM slack_turn WHERE id = $1 AND owner = $2`, m.id())
}

// mine changes a row of this process, whose name is the last parameter. The error is errTakenOver if another process
// owns the row.
func (j *journal) mine(ctx context.Context, query string, args ...any) error {
	var n int64
	err := j.change(ctx, func(ctx context.Context, tx *sql.Tx, me string) (err error) {
		n, err = affected(tx.ExecContext(ctx, query, append(slices.Clip(args), me)...))
		return err
	})
	if err == nil && n == 0 {
		return errTakenOver
	}
	return err
}

// stopTopic is announced when somebody stops a turn.
const stopTopic = "slack stop"

// stop asks the process that runs a turn of the conversation to stop it.
func (j *journal) stop(ctx context.Context, conversation, user string) error {
	return j.change(ctx, func(ctx context.Context, tx *sql.Tx, _ string) error {
		_, err := tx.ExecContext(ctx, `UPDATE slack_turn SET stopped_by = $1 WHERE conversation = $2 AND state = $3`,
			user, conversation, stateRunning)
		if err != nil {
			return err
		}
		return j.store.Announce(ctx, tx, stopTopic)
	})
}

// running returns the messages that any process is answering in a channel.
func (j *journal) running(ctx context.Context, team, channel string) ([]*message, error) {
	prefix := conversation(team, channel, "")
	return store.List(ctx, j.store, func(rows *sql.Rows) (*message, error) {
		var text string
		m := new(message)
		return m, errors.Join(rows.Scan(&text), json.Unmarshal([]byte(text), m))
	}, `SELECT message FROM slack_turn WHERE state = $1 AND substr(conversation, 1, $2) = $3`, stateRunning,
		len(prefix), prefix)
}

// stops returns the conversations of this process whose turn somebody stopped, and who did.
func (j *journal) stops(ctx context.Context) (map[string]string, error) {
	me, err := j.me()
	if err != nil {
		return nil, err
	}
	type stop struct{ conversation, user string }
	rows, err := store.List(ctx, j.store, func(rows *sql.Rows) (s stop, err error) {
		err = rows.Scan(&s.conversation, &s.user)
		return s, err
	}, `SELECT conversation, stopped_by FROM slack_turn WHERE owner = $1 AND stopped_by <> ''`, me)
	list := map[string]string{}
	for _, s := range rows {
		list[s.conversation] = s.user
	}
	return list, err
}

// addQuestion stores messages with questions to people, removeQuestion removes them.
func (j *journal) addQuestion(ctx context.Context, workspace string, list []posted) error {
	return j.change(ctx, func(ctx context.Context, tx *sql.Tx, me string) error {
		for _, p := range list {
			_, err := tx.ExecContext(ctx,
				`INSERT INTO slack_question (id, owner, workspace, channel, ts) VALUES ($1, $2, $3, $4, $5)`,
				p.ID, me, workspace, p.Channel, p.TS)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *journal) removeQuestion(ctx context.Context, id string) error {
	return j.exec(ctx, `DELETE FROM slack_question WHERE id = $1`, id)
}

// seen returns the last message of a thread that a turn has read, or "" for a new thread.
func (j *journal) seen(ctx context.Context, conversation string) (string, error) {
	ts, err := store.List(ctx, j.store, store.Column[string], `SELECT seen FROM slack_thread WHERE conversation = $1`,
		conversation)
	return strings.Join(ts, ""), err
}

func (j *journal) saw(ctx context.Context, conversation, ts string) error {
	return j.exec(ctx, `INSERT INTO slack_thread (conversation, seen, used) VALUES ($1, $2, $3)
		ON CONFLICT (conversation) DO UPDATE SET seen = excluded.seen, used = excluded.used`, conversation, ts,
		j.store.Time().UnixMilli())
}

// Forget deletes expired rows: events after a day, and the positions in threads after 90 days. One of the processes
// over the store calls it from time to time. Errors are the store's.
func Forget(ctx context.Context, s *store.Store) error {
	if err := s.Migrate(ctx, "slack", migrations...); err != nil {
		return err
	}
	return s.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.Now(ctx, tx)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM slack_event WHERE seen < $1`, now.Add(-eventTime).UnixMilli())
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM slack_thread WHERE used < $1`, now.Add(-threadTime).UnixMilli())
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM slack_form WHERE expires < $1`, now.UnixMilli())
		}
		return err
	})
}
