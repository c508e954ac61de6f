package sessionstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store/drivers"
)

// places runs a test over both kinds of stores. open opens one more replica.
func places(t *testing.T, run func(t *testing.T, open func() *SQL)) {
	for name, where := range map[string]func(*testing.T) string{
		"directory":  func(t *testing.T) string { return filepath.Join(t.TempDir(), "store") },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := where(t)
			run(t, func() *SQL {
				s, err := drivers.Open(t.Context(), place, &drivers.Options{Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				if err := s.Join(t.Context(), "test"); err != nil {
					t.Fatal(err)
				}
				sessions, err := New(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				return sessions
			})
		})
	}
}

// unused is the Use of a replica that uses no session.
func unused(string) (Use, time.Time) { return Idle, time.Time{} }

// serving is the Use of a replica that serves requests of one session, or with an empty key of all.
func serving(held string) func(string) (Use, time.Time) {
	return func(key string) (Use, time.Time) {
		if held == "" || key == held {
			return Serving, time.Time{}
		}
		return Idle, time.Time{}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// add adds a session and returns the keys of those that it ended. No limits mean large ones.
func add(t *testing.T, s *SQL, session *Session, limits *Limits) []string {
	t.Helper()
	if limits == nil {
		limits = &Limits{Sessions: 1000, PerClient: 1000, Use: unused}
	}
	ended, err := s.Add(t.Context(), session, limits)
	check(t, err)
	return ended
}

func TestSession(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		a, b := open(), open()
		ctx := t.Context()
		key := Key("session")
		add(t, a, &Session{Key: key, Owner: Key("aki"), Opening: json.RawMessage(`{"x":1}`)}, nil)
		check(t, b.SetLevel(ctx, key, "debug"))
		check(t, b.Subscribe(ctx, key, "x://2"))
		check(t, a.Subscribe(ctx, key, "x://1"))
		check(t, a.Subscribe(ctx, key, "x://1"))
		check(t, a.Subscribe(ctx, key, "x://3"))
		check(t, b.Unsubscribe(ctx, key, "x://3"))
		found, err := b.Find(ctx, key)
		check(t, err)
		want := &Session{Key: key, Owner: Key("aki"), Opening: json.RawMessage(`{"x":1}`), Level: "debug",
			Subscriptions: []string{"x://1", "x://2"}}
		if fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("got %s, want %s", found, want)
		}
		if all, err := a.List(ctx, 100); len(all) != 1 || err != nil {
			t.Error(len(all), err)
		}
		if there, err := b.Remove(ctx, key); !there || err != nil {
			t.Error(there, err)
		}
		if there, err := a.Remove(ctx, key); there || err != nil {
			t.Error(there, err)
		}
		if _, err := a.Find(ctx, key); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
	})
}

// TestHostileSessions: sessions beyond a limit end others, here and at other replicas, and refuse nobody.
func TestHostileSessions(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(t *testing.T, a, b *SQL){
		"a client ends its own, the longest idle one first": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 100, PerClient: 3, Use: unused}
			add(t, a, &Session{Key: "other", Client: "two"}, limits)
			age(t, a, "mcp_session", "used", time.Hour)
			var all []string
			for i := range 9 {
				replica := []*SQL{a, b}[i%2]
				all = append(all, add(t, replica, &Session{Key: fmt.Sprint(i), Client: "one"}, limits)...)
				age(t, a, "mcp_session", "used", time.Minute)
			}
			if want := []string{"0", "1", "2", "3", "4", "5"}; !slices.Equal(all, want) {
				t.Errorf("ended %v, want %v", all, want)
			}
			if _, err := a.Find(t.Context(), "other"); err != nil {
				t.Errorf("another client's session: %v", err)
			}
		},
		"all together end sessions of who has most": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 5, PerClient: 100, Use: unused}
			add(t, a, &Session{Key: "quiet", Client: "two"}, limits)
			age(t, a, "mcp_session", "used", time.Hour)
			for i := range 20 {
				add(t, b, &Session{Key: fmt.Sprint(i), Client: "one"}, limits)
			}
			if all, err := a.List(t.Context(), 100); len(all) != 5 || err != nil {
				t.Error(len(all), err)
			}
			if _, err := a.Find(t.Context(), "quiet"); err != nil {
				t.Errorf("the quiet client's session: %v", err)
			}
		},
		"one in use at another replica is not idle": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 100, PerClient: 2, Use: unused}
			add(t, a, &Session{Key: "held", Client: "one"}, limits)
			add(t, a, &Session{Key: "idle", Client: "one"}, limits)
			age(t, a, "mcp_session", "used", time.Hour)
			if _, err := a.Touch(t.Context(), nil, []string{"held"}, nil); err != nil {
				t.Fatal(err)
			}
			if ended := add(t, b, &Session{Key: "new", Client: "one"}, limits); !slices.Equal(ended, []string{"idle"}) {
				t.Errorf("ended %v", ended)
			}
			age(t, a, "mcp_session", "held", Held+time.Second)
			if ended := add(t, b, &Session{Key: "newer", Client: "one"}, limits); !slices.Equal(ended, []string{"held"}) {
				t.Errorf("ended %v once nobody holds it", ended)
			}
		},
		"one in use here is not idle": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 100, PerClient: 2, Use: serving("held")}
			add(t, a, &Session{Key: "held", Client: "one"}, limits)
			age(t, a, "mcp_session", "used", time.Hour)
			add(t, a, &Session{Key: "idle", Client: "one"}, limits)
			if ended := add(t, a, &Session{Key: "new", Client: "one"}, limits); !slices.Equal(ended, []string{"idle"}) {
				t.Errorf("ended %v", ended)
			}
		},
		"one alone may be the newest": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 1, PerClient: 1, Use: serving("")}
			for i := range 3 {
				add(t, a, &Session{Key: fmt.Sprint(i), Client: "one"}, limits)
			}
			if _, err := b.Find(t.Context(), "2"); err != nil {
				t.Error(err)
			}
		},
		"nothing is left of what has ended": func(t *testing.T, a, b *SQL) {
			limits := &Limits{Sessions: 100, PerClient: 1, Use: unused}
			add(t, a, &Session{Key: "old", Client: "one"}, limits)
			check(t, a.Subscribe(t.Context(), "old", "x://1"))
			check(t, a.OpenStream(t.Context(), "old", "s", nil))
			check(t, a.Append(t.Context(), "old", "s", Event{1, "{}"}, true))
			add(t, a, &Session{Key: "new", Client: "one"}, limits)
			for _, table := range []string{"mcp_subscription", "mcp_stream", "mcp_event"} {
				if n := rows(t, a, table); n != 0 {
					t.Errorf("%d rows of %s", n, table)
				}
			}
			if n := rows(t, a, "mcp_mail"); n == 0 {
				t.Error("the other replica is not told")
			}
		},
		"smaller limits hold for who comes": func(t *testing.T, a, b *SQL) {
			for i := range 10 {
				add(t, a, &Session{Key: fmt.Sprint(i), Client: "one"}, nil)
			}
			add(t, b, &Session{Key: "new", Client: "two"}, &Limits{Sessions: 4, PerClient: 2, Use: unused})
			if all, err := a.List(t.Context(), 100); len(all) != 4 || err != nil {
				t.Error(len(all), err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, open func() *SQL) { attack(t, open(), open()) })
		})
	}
}

// What a session's owner may not guess is not in the store.
func TestKeysTellNothing(t *testing.T) {
	t.Parallel()
	if key := Key("secret"); len(key) != 64 || key == Key("secre") {
		t.Error(key)
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		a, ctx := open(), t.Context()
		for _, name := range []string{"used", "idle"} {
			add(t, a, &Session{Key: name, Opening: json.RawMessage(`{}`)}, nil)
			check(t, a.Subscribe(ctx, name, "x://1"))
			check(t, a.OpenStream(ctx, name, "s", nil))
			check(t, a.Append(ctx, name, "s", Event{1, "{}"}, true))
		}
		age(t, a, "mcp_session", "used", time.Hour)
		ended, err := a.Touch(ctx, []string{"used"}, nil, []string{"used", "idle", "never"})
		if err != nil || !slices.Equal(ended, []string{"never"}) {
			t.Error(ended, err)
		}
		check(t, a.Expire(ctx, 30*time.Minute))
		check(t, a.Expire(ctx, 30*time.Minute))
		if _, err := a.Find(ctx, "idle"); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if found, err := a.Find(ctx, "used"); err != nil || len(found.Subscriptions) != 1 {
			t.Error(found, err)
		}
		if _, err := a.Stream(ctx, "idle", "s", 0); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if stream, err := a.Stream(ctx, "used", "s", 0); err != nil || !stream.Ended || len(stream.Events) != 1 {
			t.Error(stream, err)
		}
		age(t, a, "mcp_stream", "ended", retention+time.Second)
		check(t, a.Expire(ctx, 30*time.Minute))
		if _, err := a.Stream(ctx, "used", "s", 0); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if n := rows(t, a, "mcp_event"); n != 0 {
			t.Errorf("%d events are left", n)
		}
	})
}

// age makes what a table has older.
func age(t *testing.T, s *SQL, table, column string, by time.Duration) {
	t.Helper()
	check(t, s.store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE "+table+" SET "+column+" = "+column+" - $1", by.Milliseconds())
		return err
	}))
}

func rows(t *testing.T, s *SQL, table string) (n int) {
	t.Helper()
	check(t, s.store.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
	}))
	return n
}

// TestLeftComesLast: that a client has left is not read before its request.
func TestLeftComesLast(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		s := open()
		check(t, s.update(t.Context(), func(tx *sql.Tx, now int64) error {
			for i, kind := range []string{Left, Request, Left, Updated} {
				mail := Mail{ID: fmt.Sprint(i), Kind: kind}
				if err := s.send(t.Context(), tx, now, []string{s.Replica()}, mail); err != nil {
					return err
				}
			}
			return nil
		}))
		var kinds []string
		check(t, s.collect(t.Context(), map[string]bool{}, func(m Mail) { kinds = append(kinds, m.Kind) }))
		if len(kinds) != 4 || kinds[2] != Left || kinds[3] != Left {
			t.Errorf("came as %v", kinds)
		}
	})
}

// Mail reaches all others, and nobody twice.
func TestMail(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		list := []*SQL{open(), open(), open()}
		got := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i, s := range list {
			go s.Receive(ctx, func(m Mail) { got <- fmt.Sprint(i, m.Kind, m.Session, m.Body) },
				func(err error) { t.Error(err) })
		}
		check(t, list[0].Send(ctx, Mail{Kind: Updated, Body: "all"}))
		if sent, err := list[1].SendTo(ctx, list[2].Replica(), Mail{Kind: Message, Session: "key", Body: "one"}); !sent ||
			err != nil {
			t.Error(sent, err)
		}
		if sent, err := list[1].SendTo(ctx, "0123456789abcdef", Mail{Kind: Message, Session: "key", Body: "nobody"}); sent ||
			err != nil {
			t.Error(sent, err)
		}
		want := []string{"1updatedall", "2messagekeyone", "2updatedall"}
		var all []string
		for range want {
			select {
			case m := <-got:
				all = append(all, m)
			case <-testwait.Context(t).Done():
				t.Fatalf("got %v", all)
			}
		}
		if slices.Sort(all); !slices.Equal(all, want) {
			t.Errorf("got %v, want %v", all, want)
		}
		for rows(t, list[0], "mcp_mail") > 0 { // until the test's time is over
			time.Sleep(time.Millisecond)
		}
		if len(got) > 0 {
			t.Errorf("%s came twice", <-got)
		}
	})
}

func TestSeal(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "an answer", strings.Repeat("x", 1<<20)} {
		sealed := Seal("id", "here", []byte(data))
		if got, err := Unseal("id", "here", sealed); string(got) != data || err != nil {
			t.Error(len(got), err)
		}
		if sealed == Seal("id", "here", []byte(data)) || len(data) > 0 && strings.Contains(sealed, data) {
			t.Error("it can be told what it is")
		}
		for _, bad := range []string{"", "AAAA", "!", sealed[1:], sealed[:len(sealed)-2], "A" + sealed[1:], "B" + sealed[1:]} {
			if got, err := Unseal("id", "here", bad); bad != sealed && err == nil {
				t.Errorf("%q was unsealed", got)
			}
		}
		for _, id := range []string{"", "other", Key("id")} {
			if _, err := Unseal(id, "here", sealed); err == nil {
				t.Errorf("unsealed with %q", id)
			}
		}
	}
}

// What is written on a stream that is no more is not kept: nobody would delete it.
func TestDroppedStream(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		a, b := open(), open()
		ctx := t.Context()
		if sent, err := a.Ask(ctx, b.Replica(), Mail{ID: "s", Kind: Request, Session: "key"}); !sent || err != nil {
			t.Fatal(sent, err)
		}
		for range 2 { // as after a lost connection
			check(t, b.Append(ctx, "key", "s", Event{1, "one"}, false))
		}
		if stream, err := a.Stream(ctx, "key", "s", 0); err != nil || stream.Replica != b.Replica() ||
			len(stream.Events) != 1 || stream.Ended {
			t.Error(stream, err)
		}
		check(t, a.Drop(ctx, "key", "s"))
		check(t, b.Append(ctx, "key", "s", Event{2, "two"}, true))
		if n := rows(t, a, "mcp_event") + rows(t, a, "mcp_stream"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		if sent, err := a.Ask(ctx, "0123456789abcdef", Mail{ID: "s", Kind: Request, Session: "key"}); sent ||
			err != nil || rows(t, a, "mcp_stream") != 0 {
			t.Error(sent, err)
		}
	})
}

func TestStream(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, open func() *SQL) {
		a, b := open(), open()
		ctx := t.Context()
		check(t, a.OpenStream(ctx, "key", "s", []json.RawMessage{json.RawMessage(`7`)}))
		rings := b.StreamChanges(ctx, "s")
		check(t, a.Append(ctx, "key", "s", Event{1, `{"a":1}`}, false))
		check(t, a.Append(ctx, "key", "s", Event{2, `{"b":2}`}, true))
		select {
		case <-rings:
		case <-testwait.Context(t).Done():
			t.Error("nobody is told")
		}
		stream, err := b.Stream(ctx, "key", "s", 1)
		check(t, err)
		if stream.Replica != a.Replica() || !stream.Ended || len(stream.Events) != 1 || stream.Events[0].Number != 2 ||
			string(stream.Requests[0]) != "7" {
			t.Errorf("got %+v", stream)
		}
		if _, err := b.Stream(ctx, "other", "s", 0); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if lives, err := b.Lives(ctx, a.Replica()); !lives || err != nil {
			t.Error(lives, err)
		}
		if lives, err := b.Lives(ctx, "0123456789abcdef"); lives || err != nil {
			t.Error(lives, err)
		}
	})
}
