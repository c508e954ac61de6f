// Package sessionstore keeps the sessions of MCP clients (up to MCP 2025-11-25) and connects the replicas of a server.
//
// Memory keeps the sessions of a server that is alone. SQL connects replicas with a database in common, PostgreSQL or a
// directory: it has the state from which any of them restores a session, the events of streams that clients resume, and
// mail between replicas, which also forwards requests to the replica that holds a pending call. Sessions are known by
// Key, so that who reads a store cannot take one over.
package sessionstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/store"
)

// ErrNone means that there is no such session or stream, or none any more.
var ErrNone = errors.New("there is no such session or stream")

// SQL keeps the sessions of replicas that have a database in common.
type SQL struct{ store *store.Store }

var steps = []string{
	`CREATE TABLE mcp_session (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, opening TEXT NOT NULL, level TEXT NOT NULL, used BIGINT NOT NULL);
	CREATE INDEX mcp_session_used ON mcp_session (used);
	CREATE TABLE mcp_subscription (session TEXT NOT NULL, uri TEXT NOT NULL, PRIMARY KEY (session, uri));
	CREATE TABLE mcp_stream (session TEXT NOT NULL, id TEXT NOT NULL, replica TEXT NOT NULL, requests TEXT NOT NULL, ended BIGINT NOT NULL,
		opened BIGINT NOT NULL, PRIMARY KEY (session, id));
	CREATE INDEX mcp_stream_opened ON mcp_stream (opened);
	CREATE TABLE mcp_event (session TEXT NOT NULL, stream TEXT NOT NULL, number BIGINT NOT NULL, data TEXT NOT NULL,
		PRIMARY KEY (session, stream, number));
	CREATE TABLE mcp_mail (id TEXT NOT NULL PRIMARY KEY, target TEXT NOT NULL, kind TEXT NOT NULL, session TEXT NOT NULL, body TEXT NOT NULL,
		sent BIGINT NOT NULL);
	CREATE INDEX mcp_mail_target ON mcp_mail (target)`,
	`ALTER TABLE mcp_session ADD COLUMN client TEXT NOT NULL DEFAULT '';
	ALTER TABLE mcp_session ADD COLUMN held BIGINT NOT NULL DEFAULT 0;
	CREATE INDEX mcp_session_client ON mcp_session (client, used)`,
	`ALTER TABLE mcp_session ADD COLUMN opener TEXT NOT NULL DEFAULT '';
	ALTER TABLE mcp_session ADD COLUMN opened BIGINT NOT NULL DEFAULT 0`,
}

// New returns the sessions in s, whose process must have joined the replicas. Its error is s's.
func New(ctx context.Context, s *store.Store) (*SQL, error) {
	if err := s.Migrate(ctx, "MCP sessions", steps...); err != nil {
		return nil, err
	}
	return &SQL{s}, nil
}

// Replica is this process's id.
func (s *SQL) Replica() string { return s.store.Replica() }

// Session is the state from which another replica restores a session.
type Session struct {
	Key string
	// Owner identifies the owner of the session.
	Owner string
	// Client identifies the client whose limit it counts against. Find leaves it out.
	Client string
	// Opening are the parameters of initialize, Level is the one of logging/setLevel, or empty.
	Opening json.RawMessage
	Level   string
	// Subscriptions are the URIs of resources.
	Subscriptions []string
	// Opener describes the caller that opened it, for lists of sessions. Find leaves it out.
	Opener json.RawMessage
}

// Listed is a session in a list. Sessions that an earlier version has opened have no time of opening.
type Listed struct {
	Session
	// Opened and Used are when it was opened and last used. Used may lag behind.
	Opened, Used time.Time
}

// Key returns the name under which the store knows a session's ID, or a user.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Limits bound the number of sessions: of all clients, and of one.
type Limits struct {
	Sessions, PerClient int
	// Use returns what this replica uses a session for at the moment, and when it did last. Sessions in use are ended
	// last.
	Use func(key string) (Use, time.Time)
}

// Use is a replica's use of a session.
type Use int

// What sessions are used for, the least first.
const (
	Idle Use = iota
	Streaming
	Serving
)

// Held is the time for which a session counts as in use after a Touch that says so.
const Held = 90 * time.Second

// Add stores a new session. Beyond the limits, it ends others, notifies the other replicas, and returns
// their keys: first sessions of the same client, then of whichever client has most, each time the one that was used
// longest ago, and those in use last.
func (s *SQL) Add(ctx context.Context, session *Session, limits *Limits) (ended []string, err error) {
	others, err := s.others(ctx)
	if err != nil {
		return nil, err
	}
	err = s.update(ctx, func(tx *sql.Tx, now int64) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO mcp_session (id, owner, client, opening, level, opener, opened, used)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $7)`,
			session.Key, session.Owner, session.Client, string(session.Opening), session.Level, string(session.Opener),
			now)
		if err == nil {
			ended, err = makeRoom(ctx, tx, now, session, limits)
		}
		for _, key := range ended {
			err = errors.Join(err, remove(ctx, tx, key), s.send(ctx, tx, now, others, Mail{Kind: Ended, Session: key}))
		}
		return err
	})
	return ended, err
}

// makeRoom returns the sessions that have to end for a new one.
func makeRoom(ctx context.Context, tx *sql.Tx, now int64, session *Session, limits *Limits) ([]string, error) {
	var own, all int
	row := tx.QueryRowContext(ctx,
		"SELECT (SELECT count(*) FROM mcp_session WHERE client = $1), (SELECT count(*) FROM mcp_session)",
		session.Client)
	if err := row.Scan(&own, &all); err != nil {
		return nil, err
	}
	if own > limits.PerClient {
		return leastUsed(ctx, tx, now, session.Client, session.Key, own-limits.PerClient, limits.Use)
	}
	if all <= limits.Sessions {
		return nil, nil
	}
	var most string
	row = tx.QueryRowContext(ctx,
		"SELECT client FROM mcp_session WHERE id <> $1 GROUP BY client ORDER BY count(*) DESC, min(used) LIMIT 1",
		session.Key)
	if err := row.Scan(&most); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return leastUsed(ctx, tx, now, most, session.Key, all-limits.Sessions, limits.Use)
}

// maxEnded bounds how many sessions end for a new one, should the limits have become smaller.
const maxEnded = 100

// leastUsed returns n sessions of a client, or as many as there are, that are better ended than its others.
func leastUsed(ctx context.Context, tx *sql.Tx, now int64, client, but string, n int,
	use func(string) (Use, time.Time)) ([]string, error) {
	keys, err := store.Select(ctx, tx, store.Column[string],
		`SELECT id FROM mcp_session WHERE client = $1 AND id <> $2
		ORDER BY CASE WHEN held > $3 THEN 1 ELSE 0 END, used`,
		client, but, now)
	slices.SortStableFunc(keys, func(a, b string) int {
		useA, _ := use(a)
		useB, _ := use(b)
		return cmp.Compare(min(useA, Streaming), min(useB, Streaming))
	})
	return keys[:min(n, maxEnded, len(keys))], err
}

// remove removes a session and what belongs to it.
func remove(ctx context.Context, tx *sql.Tx, key string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM mcp_session WHERE id = $1", key); err != nil {
		return err
	}
	return forget(ctx, tx, key)
}

// update is the store's Update with its clock's time, in Unix milliseconds.
func (s *SQL) update(ctx context.Context, f func(tx *sql.Tx, now int64) error) error {
	return s.store.Update(ctx, func(tx *sql.Tx) error {
		now, err := s.store.Now(ctx, tx)
		if err != nil {
			return err
		}
		return f(tx, now.UnixMilli())
	})
}

// Release leaves the session to other replicas, until Expire removes it.
func (s *SQL) Release(string) {}

// Find returns a session, or ErrNone.
func (s *SQL) Find(ctx context.Context, key string) (*Session, error) {
	session := &Session{Key: key}
	err := s.store.View(ctx, func(tx *sql.Tx) error {
		var opening string
		row := tx.QueryRowContext(ctx, "SELECT owner, opening, level FROM mcp_session WHERE id = $1", key)
		if err := row.Scan(&session.Owner, &opening, &session.Level); err != nil {
			return err
		}
		session.Opening = json.RawMessage(opening)
		var err error
		session.Subscriptions, err = store.Select(ctx, tx, store.Column[string],
			"SELECT uri FROM mcp_subscription WHERE session = $1 ORDER BY uri", key)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNone
	}
	return session, err
}

// maxOpening bounds the texts of a listed session, in characters. Clients describe themselves in far less.
const maxOpening = 64 << 10

// List returns up to n sessions, those that were used last first.
func (s *SQL) List(ctx context.Context, n int) ([]Listed, error) {
	return store.List(ctx, s.store, scanListed,
		`SELECT id, owner, CASE WHEN length(opening) > $1 THEN '' ELSE opening END,
		CASE WHEN length(opener) > $1 THEN '' ELSE opener END, opened, used FROM mcp_session ORDER BY used DESC, id LIMIT $2`,
		maxOpening, n)
}

func scanListed(rows *sql.Rows) (l Listed, err error) {
	var opening, opener string
	var opened, used int64
	err = rows.Scan(&l.Key, &l.Owner, &opening, &opener, &opened, &used)
	l.Opening, l.Opener, l.Used = json.RawMessage(opening), json.RawMessage(opener), time.UnixMilli(used)
	if opened > 0 {
		l.Opened = time.UnixMilli(opened)
	}
	return l, err
}

// Remove ends a session, and notifies the other replicas. It reports whether there was one.
func (s *SQL) Remove(ctx context.Context, key string) (there bool, err error) {
	others, err := s.others(ctx)
	if err != nil {
		return false, err
	}
	err = s.update(ctx, func(tx *sql.Tx, now int64) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM mcp_session WHERE id = $1", key)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if there = n > 0; err != nil || !there {
			return err
		}
		if err := forget(ctx, tx, key); err != nil {
			return err
		}
		return s.send(ctx, tx, now, others, Mail{Kind: Ended, Session: key})
	})
	return there, err
}

// forget removes what belongs to a session.
func forget(ctx context.Context, tx *sql.Tx, key string) error {
	for _, table := range []string{"mcp_subscription", "mcp_stream", "mcp_event"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE session = $1", key); err != nil {
			return err
		}
	}
	return nil
}

// SetLevel stores the level of logging/setLevel, and notifies the other replicas.
func (s *SQL) SetLevel(ctx context.Context, key, level string) error {
	return s.change(ctx, key, "UPDATE mcp_session SET level = $1 WHERE id = $2", level, key)
}

// Subscribe stores a subscription, and notifies the other replicas.
func (s *SQL) Subscribe(ctx context.Context, key, uri string) error {
	return s.change(ctx, key, "INSERT INTO mcp_subscription (session, uri) VALUES ($1, $2) ON CONFLICT DO NOTHING", key,
		uri)
}

// Unsubscribe ends a subscription, and notifies the other replicas.
func (s *SQL) Unsubscribe(ctx context.Context, key, uri string) error {
	return s.change(ctx, key, "DELETE FROM mcp_subscription WHERE session = $1 AND uri = $2", key, uri)
}

func (s *SQL) change(ctx context.Context, key, query string, args ...any) error {
	others, err := s.others(ctx)
	if err != nil {
		return err
	}
	return s.update(ctx, func(tx *sql.Tx, now int64) error {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		return s.send(ctx, tx, now, others, Mail{Kind: Changed, Session: key})
	})
}

// maxKeys bounds how many sessions one statement names.
const maxKeys = 500

// Touch notes that used sessions have been used just now and that held ones are in use, and returns those of known that
// have ended.
func (s *SQL) Touch(ctx context.Context, used, held, known []string) (ended []string, err error) {
	set := func(column string, keys []string, after time.Duration) error {
		for chunk := range chunks(keys) {
			err := s.update(ctx, func(tx *sql.Tx, now int64) error {
				list, args := named(chunk, now+after.Milliseconds())
				_, err := tx.ExecContext(ctx, "UPDATE mcp_session SET "+column+" = $1 WHERE id IN ("+list+")", args...)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(set("used", used, 0), set("held", held, Held)); err != nil {
		return nil, err
	}
	for chunk := range chunks(known) {
		there := map[string]bool{}
		err := s.store.View(ctx, func(tx *sql.Tx) error {
			list, args := named(chunk)
			found, err := store.Select(ctx, tx, store.Column[string], "SELECT id FROM mcp_session WHERE id IN ("+list+
				")", args...)
			for _, key := range found {
				there[key] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, key := range chunk {
			if !there[key] {
				ended = append(ended, key)
			}
		}
	}
	return ended, nil
}

func chunks(keys []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(keys) > 0 {
			n := min(len(keys), maxKeys)
			if !yield(keys[:n]) {
				return
			}
			keys = keys[n:]
		}
	}
}

// named lists parameters for keys, after others.
func named(keys []string, before ...any) (list string, args []any) {
	var b strings.Builder
	args = before
	for i, key := range keys {
		args = append(args, key)
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "$%d", len(args))
	}
	return b.String(), args
}

// retention is the time for which events of a stream can be fetched again, and mail waits to be read.
const retention = 5 * time.Minute

// Expire removes sessions that have been idle for that long, and what is kept of streams and mail for longer than 5
// minutes. It is for one replica at a time, and does no harm at several.
func (s *SQL) Expire(ctx context.Context, idle time.Duration) error {
	return s.update(ctx, func(tx *sql.Tx, now int64) error {
		keys, err := store.Select(ctx, tx, store.Column[string], "DELETE FROM mcp_session WHERE used < $1 RETURNING id",
			now-idle.Milliseconds())
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := forget(ctx, tx, key); err != nil {
				return err
			}
		}
		// A stream that never ended was answered by a replica that is no more.
		const old = "(ended > 0 AND ended < $1 OR opened < $1 - 86400000)"
		for _, query := range []string{
			"DELETE FROM mcp_event WHERE EXISTS (SELECT 1 FROM mcp_stream s WHERE s.session = mcp_event.session AND s.id = mcp_event.stream AND " + old + ")",
			"DELETE FROM mcp_stream WHERE " + old,
			"DELETE FROM mcp_mail WHERE sent < $1",
		} {
			if _, err := tx.ExecContext(ctx, query, now-retention.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
}
