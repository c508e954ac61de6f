package slackbot

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
)

// migrations are the steps of the tables. Those that were released never change.
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
CREATE TABLE slack_thread (conversation TEXT PRIMARY KEY, seen TEXT NOT NULL, used BIGINT NOT NULL)`}

// States of a turn in the journal. One that has ended is not in it.
const (
	stateWaiting = "waiting"
	stateRunning = "running"
)

// How long things are kept.
const (
	// eventTime is longer than Slack repeats an event (docs.slack.dev/apis/events-api: three times within about an hour).
	eventTime = 24 * time.Hour
	// threadTime is how long it is known what of a thread was read.
	threadTime = 90 * 24 * time.Hour
)

// journal is what must outlive the process: which events were taken, and which turns and questions are open. Each of its rows has an
// owner, a process that holds the lock of that name; when it dies, the kernel gives the lock back and another process takes its rows over.
type journal struct {
	store   *store.Store
	owner   string
	release func()
	claims  chan *claim
}

func openJournal(ctx context.Context, s *store.Store) (*journal, error) {
	if err := s.Migrate(ctx, "slack", migrations...); err != nil {
		return nil, err
	}
	return &journal{store: s, owner: rand.Text(), claims: make(chan *claim)}, nil
}

func lockName(owner string) string { return "slack-" + owner }

func (j *journal) begin(ctx context.Context) (err error) {
	j.release, err = j.store.Lock(ctx, lockName(j.owner))
	return err
}

func (j *journal) end() { j.release() }

// claim is an event that wants to be written down, with the message that it brings, if any.
type claim struct {
	id      string
	message *message
	fresh   bool
	done    chan error
}

// claim writes an event down, and the message to be answered, before Slack is told that it was taken. It reports false for one that was
// taken before, here or by another replica.
func (j *journal) claim(ctx context.Context, id string, m *message) (fresh bool, err error) {
	c := &claim{id: id, message: m, done: make(chan error, 1)}
	select {
	case j.claims <- c:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	err = <-c.done
	return c.fresh, err
}

// mostClaims is how many claims go into one transaction. A transaction waits for the disk, and events come in bursts.
const mostClaims = 256

// commit writes claims down until ctx ends.
func (j *journal) commit(ctx context.Context) error {
	for {
		var batch []*claim
		select {
		case c := <-j.claims:
			batch = append(batch, c)
		case <-ctx.Done():
			return nil
		}
		for more := true; more && len(batch) < mostClaims; {
			select {
			case c := <-j.claims:
				batch = append(batch, c)
			default:
				more = false
			}
		}
		err := j.write(context.WithoutCancel(ctx), batch)
		for _, c := range batch {
			c.done <- err
		}
	}
}

func (j *journal) write(ctx context.Context, batch []*claim) error {
	now := time.Now().UnixMilli()
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		for _, c := range batch {
			result, err := tx.ExecContext(ctx, `INSERT INTO slack_event (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, c.id, now)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			if c.fresh = n == 1; c.fresh && c.message != nil {
				if err := j.insert(ctx, tx, c.message); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (j *journal) insert(ctx context.Context, tx *sql.Tx, m *message) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO slack_turn (id, owner, workspace, conversation, state, message, answer, stopped_by) VALUES ($1, $2, $3, $4, $5, $6, '', '')
		ON CONFLICT (id) DO NOTHING`, m.id(), j.owner, m.Workspace, m.conversation(), stateWaiting, string(encoded))
	return err
}

func (j *journal) exec(ctx context.Context, query string, args ...any) error {
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}

// started notes that the turn runs.
func (j *journal) started(ctx context.Context, m *message) error {
	return j.exec(ctx, `UPDATE slack_turn SET state = $1 WHERE id = $2`, stateRunning, m.id())
}

// answering notes the message that holds the answer so far.
func (j *journal) answering(ctx context.Context, m *message, ts string) error {
	return j.exec(ctx, `UPDATE slack_turn SET answer = $1 WHERE id = $2`, ts, m.id())
}

// ended takes the turn out.
func (j *journal) ended(ctx context.Context, m *message) error {
	return j.exec(ctx, `DELETE FROM slack_turn WHERE id = $1`, m.id())
}

// stop asks whichever process runs a turn of the conversation to stop it, and reports whether there is one.
func (j *journal) stop(ctx context.Context, conversation, user string) (running bool, err error) {
	err = j.store.Update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE slack_turn SET stopped_by = $1 WHERE conversation = $2 AND state = $3`, user, conversation, stateRunning)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		running = n > 0
		return err
	})
	return running, err
}

// stops are the conversations of this process whose turn somebody wants to stop, and who.
func (j *journal) stops(ctx context.Context) (map[string]string, error) {
	list := map[string]string{}
	err := j.query(ctx, func(rows *sql.Rows) error {
		var conversation, user string
		if err := rows.Scan(&conversation, &user); err != nil {
			return err
		}
		list[conversation] = user
		return nil
	}, `SELECT conversation, stopped_by FROM slack_turn WHERE owner = $1 AND stopped_by <> ''`, j.owner)
	return list, err
}

func (j *journal) query(ctx context.Context, each func(*sql.Rows) error, query string, args ...any) error {
	return j.store.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// lost is what a process that died has left open in a workspace.
type lost struct {
	waiting, running []*message
	// answers are the timestamps of the answers of running, or empty.
	answers   []string
	questions []posted
}

// posted is a message that asks people.
type posted struct{ ID, Channel, TS string }

// adopt takes over what processes that have died have left in the workspace.
func (j *journal) adopt(ctx context.Context, workspace string) (*lost, error) {
	owners := map[string]bool{}
	note := func(rows *sql.Rows) error {
		var owner string
		err := rows.Scan(&owner)
		owners[owner] = true
		return err
	}
	err := j.query(ctx, note, `SELECT DISTINCT owner FROM slack_turn WHERE workspace = $1 AND owner <> $2
		UNION SELECT DISTINCT owner FROM slack_question WHERE workspace = $1 AND owner <> $2`, workspace, j.owner)
	if err != nil {
		return nil, err
	}
	found := &lost{}
	for owner := range owners {
		if err := j.adoptFrom(ctx, found, workspace, owner); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// lockTry is how long it takes at most to see that a process lives.
const lockTry = 50 * time.Millisecond

// adoptFrom takes over what owner has left, if it is dead.
func (j *journal) adoptFrom(ctx context.Context, found *lost, workspace, owner string) error {
	trying, cancel := context.WithTimeout(ctx, lockTry)
	defer cancel()
	release, err := j.store.Lock(trying, lockName(owner))
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		if err := found.read(ctx, tx, workspace, owner); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE slack_turn SET owner = $1 WHERE workspace = $2 AND owner = $3`, j.owner, workspace, owner); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE slack_question SET owner = $1 WHERE workspace = $2 AND owner = $3`, j.owner, workspace, owner)
		return err
	})
}

// read adds the rows of owner.
func (l *lost) read(ctx context.Context, tx *sql.Tx, workspace, owner string) error {
	rows, err := tx.QueryContext(ctx, `SELECT state, message, answer FROM slack_turn WHERE workspace = $1 AND owner = $2`, workspace, owner)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var state, text, answer string
		m := new(message)
		if err := errors.Join(rows.Scan(&state, &text, &answer), json.Unmarshal([]byte(text), m)); err != nil {
			return fmt.Errorf("a message of the journal: %w", err)
		}
		if state == stateWaiting {
			l.waiting = append(l.waiting, m)
			continue
		}
		l.running, l.answers = append(l.running, m), append(l.answers, answer)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	questions, err := tx.QueryContext(ctx, `SELECT id, channel, ts FROM slack_question WHERE workspace = $1 AND owner = $2`, workspace, owner)
	if err != nil {
		return err
	}
	defer questions.Close()
	for questions.Next() {
		var p posted
		if err := questions.Scan(&p.ID, &p.Channel, &p.TS); err != nil {
			return err
		}
		l.questions = append(l.questions, p)
	}
	return questions.Err()
}

// asked notes messages that ask people, answered takes them out.
func (j *journal) asked(ctx context.Context, workspace string, list []posted) error {
	return j.store.Update(ctx, func(tx *sql.Tx) error {
		for _, p := range list {
			_, err := tx.ExecContext(ctx, `INSERT INTO slack_question (id, owner, workspace, channel, ts) VALUES ($1, $2, $3, $4, $5)`,
				p.ID, j.owner, workspace, p.Channel, p.TS)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *journal) answered(ctx context.Context, id string) error {
	return j.exec(ctx, `DELETE FROM slack_question WHERE id = $1`, id)
}

// seen returns the last message of a thread that a turn has read; empty for a new one.
func (j *journal) seen(ctx context.Context, conversation string) (ts string, err error) {
	err = j.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&ts) }, `SELECT seen FROM slack_thread WHERE conversation = $1`, conversation)
	return ts, err
}

func (j *journal) saw(ctx context.Context, conversation, ts string) error {
	return j.exec(ctx, `INSERT INTO slack_thread (conversation, seen, used) VALUES ($1, $2, $3)
		ON CONFLICT (conversation) DO UPDATE SET seen = excluded.seen, used = excluded.used`, conversation, ts, time.Now().UnixMilli())
}

// forget takes out what is older than anybody needs.
func (j *journal) forget(ctx context.Context) error {
	now := time.Now()
	return errors.Join(
		j.exec(ctx, `DELETE FROM slack_event WHERE seen < $1`, now.Add(-eventTime).UnixMilli()),
		j.exec(ctx, `DELETE FROM slack_thread WHERE used < $1`, now.Add(-threadTime).UnixMilli()))
}
