package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Sessions configures how long people stay logged in.
type Sessions struct {
	// Idle ends a session without requests. Zero means 1 hour.
	Idle time.Duration
	// Lifetime ends every session. Zero means 12 hours.
	Lifetime time.Duration
}

// maxPerPerson bounds the sessions of a person. A new one ends the oldest.
const maxPerPerson = 20

// migrations are the migrations of the tables. Released ones must not change. The identifiers of sessions and links are
// hashed, so that readers of the store cannot use them.
var migrations = []string{`CREATE TABLE console_session (
	id TEXT PRIMARY KEY,
	person TEXT NOT NULL,
	via TEXT NOT NULL,
	source TEXT NOT NULL,
	proof TEXT NOT NULL,
	membership TEXT NOT NULL,
	address TEXT NOT NULL,
	created BIGINT NOT NULL,
	seen BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX console_session_person ON console_session (person, via, source);
CREATE TABLE console_link (id TEXT PRIMARY KEY, person TEXT NOT NULL, expires BIGINT NOT NULL)`,
	`CREATE TABLE console_traffic (
	span TEXT NOT NULL,
	tool TEXT NOT NULL,
	number BIGINT NOT NULL,
	replica TEXT NOT NULL,
	plugin TEXT NOT NULL,
	calls BIGINT NOT NULL,
	failures BIGINT NOT NULL,
	durations BYTEA NOT NULL,
	PRIMARY KEY (span, tool, number, replica)
)`,
	`CREATE TABLE console_running (replica TEXT PRIMARY KEY, calls TEXT NOT NULL, at BIGINT NOT NULL);
CREATE TABLE console_stop (call TEXT PRIMARY KEY, at BIGINT NOT NULL)`}

func migrate(ctx context.Context, s *store.Store) error {
	return s.Migrate(ctx, "console", migrations...)
}

// sessions are the sessions of all processes over the store. Times in the store are milliseconds since 1970.
type sessions struct {
	store *store.Store
	Sessions
}

// session is a login of a person.
type session struct {
	Person
	// id is the hash in the store.
	id string
	// proof must still be configured: the hash of the token.
	proof                  string
	address                string
	created, seen, expires time.Time
}

func newSessions(ctx context.Context, s *store.Store, options Sessions) (*sessions, error) {
	if options.Idle == 0 {
		options.Idle = time.Hour
	}
	if options.Lifetime == 0 {
		options.Lifetime = 12 * time.Hour
	}
	if options.Idle < 0 || options.Lifetime < 0 {
		return nil, errors.New("console: idle and lifetime of sessions must not be negative")
	}
	return &sessions{s, options}, migrate(ctx, s)
}

// short returns an abbreviated ID for records.
func (s *session) short() string { return s.id[:min(len(s.id), 8)] }

// hashed returns the hash of a secret for the store.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// csrf returns the CSRF token of a session. It does not reveal the cookie's secret.
func csrf(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("hako console csrf"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// begin stores a new session of s.Person and returns its secret, for the cookie. It ends the browser's previous
// session, whose secret is old.
func (t *sessions) begin(ctx context.Context, s *session, old string, now time.Time) (secret string, err error) {
	secret = rand.Text() + rand.Text()
	s.id, s.created, s.seen, s.expires = hashed(secret), now, now, now.Add(t.Lifetime)
	groups, err := json.Marshal(s.Groups)
	if err != nil {
		return "", fmt.Errorf("console: %w", err)
	}
	return secret, t.store.Update(ctx, func(tx *sql.Tx) error {
		if err := t.clean(ctx, tx, s, old, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			`INSERT INTO console_session (id, person, via, source, proof, membership, address, created, seen, expires)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)`,
			s.id, s.Name, s.via, s.source, s.proof, string(groups), s.address, now.UnixMilli(), s.expires.UnixMilli())
		return err
	})
}

// endedTopic is announced when sessions are ended.
const endedTopic = "console.ended"

// clean removes expired sessions, the browser's previous session, and the oldest sessions beyond maxPerPerson.
func (t *sessions) clean(ctx context.Context, tx *sql.Tx, s *session, old string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM console_session WHERE expires <= $1 OR seen <= $2 OR id = $3`,
		now.UnixMilli(), now.Add(-t.Idle).UnixMilli(), hashed(old))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM console_session WHERE id IN
		(SELECT id FROM console_session WHERE person = $1 AND via = $2 AND source = $3 ORDER BY created DESC, id LIMIT 1000 OFFSET $4)`,
		s.Name, s.via, s.source, maxPerPerson-1)
	if err != nil {
		return err
	}
	return t.store.Announce(ctx, tx, endedTopic)
}

// find returns the session with the secret, or nil if there is none or it has ended.
func (t *sessions) find(ctx context.Context, secret string, now time.Time) (*session, error) {
	list, err := t.query(ctx, `id = $1 AND expires > $2 AND seen > $3`, hashed(secret), now.UnixMilli(),
		now.Add(-t.Idle).UnixMilli())
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// maxListed bounds the list of sessions.
const maxListed = 500

// list returns the current sessions, newest first.
func (t *sessions) list(ctx context.Context, now time.Time) ([]*session, error) {
	return t.query(ctx, fmt.Sprintf(`expires > $1 AND seen > $2 ORDER BY created DESC, id LIMIT %d`, maxListed),
		now.UnixMilli(), now.Add(-t.Idle).UnixMilli())
}

// maxSession bounds the texts of a session in the store, in characters. hako writes far less.
const maxSession = 100_000

// query returns the sessions that where selects. It skips damaged rows, which must not keep other people out.
func (t *sessions) query(ctx context.Context, where string, args ...any) ([]*session, error) {
	list, err := store.List(ctx, t.store, scanSession, fmt.Sprintf(`SELECT id, person, via, source, proof, membership,
		address, created, seen, expires FROM console_session WHERE length(id) + length(person) + length(via) +
		length(source) + length(proof) + length(membership) + length(address) <= %d AND %s`, maxSession,
		where), args...)
	return slices.DeleteFunc(list, func(s *session) bool { return s == nil }), err
}

// scanSession returns nil for a damaged row.
func scanSession(rows *sql.Rows) (*session, error) {
	s := new(session)
	var groups string
	var created, seen, expires int64
	err := rows.Scan(&s.id, &s.Name, &s.via, &s.source, &s.proof, &groups, &s.address, &created, &seen, &expires)
	if err != nil || json.Unmarshal([]byte(groups), &s.Groups) != nil {
		return nil, nil // rows.Err has the errors of the store
	}
	s.created, s.seen, s.expires = time.UnixMilli(created), time.UnixMilli(seen), time.UnixMilli(expires)
	return s, nil
}

// touch records use of the session. It writes at most every twentieth of the idle time.
func (t *sessions) touch(ctx context.Context, s *session, now time.Time) error {
	if now.Sub(s.seen) < t.Idle/20 {
		return nil
	}
	return t.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE console_session SET seen = $1 WHERE id = $2`, now.UnixMilli(), s.id)
		return err
	})
}

// end ends the session, or with everywhere all sessions of the person.
func (t *sessions) end(ctx context.Context, s *session, everywhere bool) error {
	return t.store.Update(ctx, func(tx *sql.Tx) error {
		query, args := `DELETE FROM console_session WHERE id = $1`, []any{s.id}
		if everywhere {
			query, args = `DELETE FROM console_session WHERE person = $1 AND via = $2 AND source = $3`,
				[]any{s.Name, s.via, s.source}
		}
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		return t.store.Announce(ctx, tx, endedTopic)
	})
}

// EndSessions ends the sessions of a user in the console over a store, at all replicas, and returns how many there
// were.
func EndSessions(ctx context.Context, s *store.Store, user string) (ended int64, err error) {
	if err := migrate(ctx, s); err != nil {
		return 0, err
	}
	err = s.Update(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM console_session WHERE person = $1`, user)
		if err != nil {
			return err
		}
		if ended, err = result.RowsAffected(); err != nil {
			return err
		}
		return s.Announce(ctx, tx, endedTopic)
	})
	return ended, err
}
