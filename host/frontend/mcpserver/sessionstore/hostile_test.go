package sessionstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store/drivers"
)

// open opens one more replica over the database at where.
func open(t *testing.T, where string) *SQL {
	t.Helper()
	s, err := drivers.Open(t.Context(), where, &drivers.Options{Dir: t.TempDir()})
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	check(t, s.Join(t.Context(), "test"))
	sessions, err := New(t.Context(), s)
	check(t, err)
	return sessions
}

func exec(t *testing.T, s *SQL, statement string, args ...any) {
	t.Helper()
	check(t, s.store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	}))
}

// TestHostileStore: what was sealed for one place of a session opens at no other, and nothing that was changed opens.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	const id, secret = "session", "what the client sent"
	place := EventPlace("stream", 7)
	sealed := Seal(id, place, []byte(secret))
	for name, at := range map[string]struct{ id, place, sealed string }{
		"another session's":     {"other", place, sealed},
		"another stream's":      {id, EventPlace("stream2", 7), sealed},
		"another number":        {id, EventPlace("stream", 8), sealed},
		"an event as a request": {id, MailPlace(Request, "m"), sealed},
		"an event as a message": {id, MailPlace(Message, ""), sealed},
		"a request as an event": {id, place, Seal(id, MailPlace(Request, "m"), []byte(secret))},
		"another request's": {id, MailPlace(Request, "m2"),
			Seal(id, MailPlace(Request, "m"), []byte(secret))},
		"a message as a request": {id, MailPlace(Request, ""),
			Seal(id, MailPlace(Message, ""), []byte(secret))},
		"a stream named like a number": {id, EventPlace("7 of stream", 7),
			Seal(id, EventPlace("stream", 7), []byte(secret))},
		"the key in the place of the ID":   {Key(id), place, sealed},
		"a bit that was changed":           {id, place, flip(sealed)},
		"the end cut off":                  {id, place, sealed[:len(sealed)-4]},
		"something added":                  {id, place, sealed + "AAAA"},
		"a line break in it":               {id, place, sealed[:8] + "\n!" + sealed[8:]},
		"nothing":                          {id, place, ""},
		"as long as a nonce":               {id, place, "AAAAAAAAAAAAAAAA"},
		"16 MiB of nothing":                {id, place, strings.Repeat("A", 16<<20)},
		"a message for no place":           {id, "", sealed},
		"one that was sealed for no place": {id, place, Seal(id, "", []byte(secret))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := Unseal(at.id, at.place, at.sealed); err == nil {
				t.Errorf("it opens: %q", got)
			}
		})
	}
}

func flip(s string) string {
	i := len(s) / 2
	c := byte('A')
	if s[i] == c {
		c = 'B'
	}
	return s[:i] + string(c) + s[i+1:]
}

// TestHostileMail: mail that no replica has sent keeps none from being told what others did send.
func TestHostileMail(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO mcp_mail (id, target, kind, session, body, sent) "
	for name, attack := range map[string]func(t *testing.T, s *SQL, me string){
		"10,000 at once": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"SELECT 'flood' || n, $1, 'updated', '', '[]', n FROM generate_series(1, 10000) n", me)
		},
		"of an unknown kind": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, 'execute', 'key', 'rm', 0)", me)
		},
		"without a kind": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, '', '', '', 0)",
				me)
		},
		"of 64 MiB": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, 'message', 'key', repeat('x', 67108864), 0)", me)
		},
		"with an ID that is SQL": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('''); DROP TABLE mcp_mail; --', $1, 'message', '', '', 0)", me)
		},
		"with an empty ID": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('', $1, 'message', '', '', 0)", me)
		},
		"from the end of time": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, 'updated', '', '[]', 9223372036854775807)", me)
		},
		"from before time": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, 'updated', '', '[]', -9223372036854775808)", me)
		},
		"with 100,000 topics": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"VALUES ('x', $1, 'updated', '', '[' || repeat('\"x\",', 100000) || '\"x\"]', 0)", me)
		},
		"for a replica that is not": func(t *testing.T, s *SQL, me string) {
			exec(t, s, insert+"SELECT 'nobody' || n, 'nobody', 'updated', '', '[]', n FROM generate_series(1, 1000) n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			a, b := open(t, where), open(t, where)
			attack(t, a, b.Replica())
			check(t, a.Send(t.Context(), Mail{Kind: Updated, Session: "real", Body: "1"}))
			ctx, cancel := context.WithCancel(testwait.Context(t))
			defer cancel()
			real, longest := 0, 0
			b.Receive(ctx, func(m Mail) {
				longest = max(longest, len(m.Body))
				if m.Session == "real" {
					real++
				}
				if m.Session == "real" && m.Body == "1" { // once more, which has to come last
					check(t, a.Send(ctx, Mail{Kind: Updated, Session: "real", Body: "2"}))
				} else if m.Session == "real" {
					cancel()
				}
			}, func(err error) {
				if ctx.Err() == nil {
					t.Error(err)
				}
			})
			if real != 2 || longest > maxMailBytes {
				t.Errorf("%d of 2 came, one with %d bytes", real, longest)
			}
		})
	}
}

// TestHostileRows: rows of sessions and streams that nobody wrote for a session do no more than end it.
func TestHostileRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statement string
		// found reports whether the session is still there, streamed that the stream can be read.
		found, streamed bool
	}{
		"requests that are no JSON":  {"UPDATE mcp_stream SET requests = '{'", true, false},
		"requests that are a number": {"UPDATE mcp_stream SET requests = '7'", true, false},
		"events with numbers below zero": {"INSERT INTO mcp_event VALUES ('" + Key("id") + "', 's', -5, 'x')",
			true, true},
		"a stream of another session":        {"UPDATE mcp_stream SET session = 'other'", true, false},
		"a session under another key":        {"UPDATE mcp_session SET id = 'other'", false, true},
		"an opening that is nothing":         {"UPDATE mcp_session SET opening = ''", true, true},
		"a level that is none":               {"UPDATE mcp_session SET level = 'shout'", true, true},
		"100,000 subscriptions of others":    {"INSERT INTO mcp_subscription SELECT 'other', 'x://' || n FROM generate_series(1, 100000) n", true, true},
		"used at the end of time":            {"UPDATE mcp_session SET used = 9223372036854775807, held = 9223372036854775807", true, true},
		"a stream that is another replica's": {"UPDATE mcp_stream SET replica = 'nobody'", true, true},
		"a replica whose name is SQL":        {"INSERT INTO replica VALUES (''';DROP TABLE mcp_mail;--', 'h', 'v', 0, 9223372036854775807)", true, true},
		"a stream whose ID is a notification": {"INSERT INTO mcp_stream VALUES ('" + Key("id") +
			"', E'x\\ny', 'r', '[]', 0, 0)", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, postgrestest.Start(t))
			ctx, key := t.Context(), Key("id")
			add(t, s, &Session{Key: key, Owner: "owner", Client: "c", Opening: []byte(`{}`)}, nil)
			check(t, s.OpenStream(ctx, key, "s", nil))
			check(t, s.Append(ctx, key, "s", Event{1, "x"}, false))
			exec(t, s, test.statement)
			found, err := s.Find(ctx, key)
			if (err == nil) != test.found || err == nil && found.Owner != "owner" {
				t.Errorf("the session: %+v, %v", found, err)
			}
			if _, err := s.Stream(ctx, key, "s", 0); (err == nil) != test.streamed {
				t.Errorf("the stream: %v", err)
			}
			if _, err := s.Touch(ctx, []string{key}, []string{key}, []string{key}); err != nil {
				t.Error(err)
			}
			check(t, s.Expire(ctx, time.Hour))
			check(t, s.Subscribe(ctx, key, fmt.Sprint("x://", name, "'; DROP TABLE mcp_session; --")))
			add(t, s, &Session{Key: "next", Client: "c", Opening: []byte(`{}`)}, nil)
		})
	}
}
