//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/postgres"
)

// TestURLs: the error for an invalid URL never contains its password.
func TestURLs(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	tests := map[string]struct {
		url, want string
	}{
		"nobody listens": {"postgres://u:s3cr3t@127.0.0.1:1/hako?connect_timeout=2",
			"cannot be reached"},
		"a password with a slash":      {"postgres://u:s3cr3t/x@127.0.0.1:1/hako", ""},
		"with a percent sign":          {"postgres://u:s3cr3t%zz@127.0.0.1:1/hako", "the URL is invalid"},
		"with a question mark":         {"postgres://u:s3cr3t?x@127.0.0.1:1/hako", ""},
		"with a hash":                  {"postgres://u:s3cr3t#x@127.0.0.1:1/hako", ""},
		"a bad port":                   {"postgres://u:s3cr3t@127.0.0.1:port/hako", "the URL is invalid"},
		"a password as parameter":      {"postgres://127.0.0.1:port/hako?password=s3cr3t", "the URL is invalid"},
		"a bad parameter, no password": {"postgres://u@127.0.0.1:1/hako?sslmode=maybe", "sslmode"},
		"no word on encryption": {"postgres://u:s3cr3t@db.example:5432/hako",
			"db.example would be unencrypted"},
		"encryption if there is some": {"postgres://u:s3cr3t@127.0.0.1:1,db.example:5432/hako?sslmode=prefer",
			"add sslmode=verify-full"},
		"a certificate that is missing": {"postgres://u@127.0.0.1:1/hako?sslmode=verify-full&sslrootcert=/no/such/file",
			"/no/such/file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			s, err := postgres.Open(t.Context(), test.url, &postgres.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err == nil {
				t.Fatal(s.Close())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if shown := err.Error() + log.String() + store.Redacted(test.url); strings.Contains(shown, secret) {
				t.Errorf("the password is shown: %s", shown)
			}
		})
	}
}

func TestRedactedKeepsTheRest(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u@h:5432/db?sslmode=require":   "postgres://u@h:5432/db?sslmode=require",
		"postgres://u:p@h:5432/db?sslmode=require": "postgres://u:xxxxx@h:5432/db?sslmode=require",
		"postgresql:///db?host=/run/postgresql":    "postgresql:///db?host=/run/postgresql",
	} {
		if got := store.Redacted(url); got != want {
			t.Errorf("%s is shown as %s", url, got)
		}
	}
}

// with returns the URL with other parameters, and with another user and password if they are not empty.
func with(t *testing.T, where, user, password string, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	query := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// TestTroubles provokes each error with a known cause at a real server.
func TestTroubles(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t, "max_connections=12", "superuser_reserved_connections=0")
	where := server.Database(t)
	for _, statement := range []string{
		"CREATE ROLE reader LOGIN", "CREATE ROLE nologin NOLOGIN", "CREATE ROLE astray LOGIN",
		"ALTER ROLE astray SET search_path = nowhere",
	} {
		server.Exec(t, statement)
	}
	s, err := postgres.Open(t.Context(), where, &postgres.Options{Connections: 2, StatementTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	raise := func(state string) func() error {
		return func() error {
			return storetest.Exec(t, s, fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION 'made up' USING ERRCODE = '%s'; END $$", state))
		}
	}
	reopen := func(where string) func() error {
		return func() error {
			s, err := postgres.Open(t.Context(), where, nil)
			if err == nil {
				err = errors.Join(s.Migrate(t.Context(), "other", "CREATE TABLE other (id BIGINT)"), s.Close())
			}
			return err
		}
	}
	tests := map[string]struct {
		do   func() error
		is   error
		want string
	}{
		"a slow statement": {func() error { return storetest.Exec(t, s, "SELECT pg_sleep(10)") }, store.ErrUnreachable,
			"postgres.statementTimeout"},
		"only reads": {func() error {
			return storetest.Exec(t, s,
				"SET TRANSACTION READ ONLY; INSERT INTO note VALUES (1, 'x')")
		}, store.ErrReadOnly, "target_session_attrs"},
		"no right":         {reopen(with(t, where, "reader", "")), store.ErrReadOnly, "let the user create"},
		"no such schema":   {reopen(with(t, where, "astray", "")), store.ErrReadOnly, "search_path"},
		"no such user":     {reopen(with(t, where, "nobody-here", "")), store.ErrUnreachable, "postgres.password"},
		"no login":         {reopen(with(t, where, "nologin", "")), store.ErrUnreachable, "postgres.password"},
		"no such database": {reopen(server.URL("missing")), store.ErrUnreachable, "create the database"},
		"a full disk":      {raise("53100"), store.ErrFull, "free some space on the database's disk"},
		"damage":           {raise("XX001"), store.ErrCorrupt, "restore the database"},
		"its own error":    {func() error { return storetest.Exec(t, s, "nonsense") }, nil, "SQLSTATE 42601"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q (%v)", err, test.want, test.is)
			}
		})
	}
	t.Run("too many connections", func(t *testing.T) {
		var open []*sql.DB
		for range 12 {
			db, err := sql.Open("pgx", where)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, db)
			defer db.Close()
			if db.PingContext(t.Context()) != nil {
				break
			}
		}
		if err := reopen(where)(); !errors.Is(err, store.ErrUnreachable) ||
			!strings.Contains(err.Error(), "max_connections") {
			t.Errorf("with %d others: %v", len(open), err)
		}
	})
}

// TestOutages: calls fail during an outage of the server and succeed after it, without a restart of hako.
func TestOutages(t *testing.T) {
	t.Parallel()
	outages := map[string]func(t *testing.T, server *postgrestest.Server) (end func()){
		"stopped": func(t *testing.T, server *postgrestest.Server) func() {
			server.Stop(t)
			return func() { server.Start(t) }
		},
		"killed": func(t *testing.T, server *postgrestest.Server) func() {
			server.Kill()
			return func() { server.Start(t) }
		},
		"hangs": func(t *testing.T, server *postgrestest.Server) func() { return server.Pause(t) },
	}
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgrestest.NewServer(t)
			s, err := postgres.Open(t.Context(), server.Database(t), &postgres.Options{StatementTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
				t.Fatal(err)
			}
			watcher := s.Changes(t.Context(), "notes")
			storetest.Receive(t, watcher)
			held, release, err := s.Lock(t.Context(), "mine")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			end := outage(t, server)
			var done sync.WaitGroup
			for range 3 {
				done.Go(func() {
					if err := s.Update(t.Context(), storetest.AppendNote(t)); !errors.Is(err, store.ErrUnreachable) {
						t.Errorf("during the outage: %v", err)
					}
				})
			}
			done.Wait()
			select {
			case <-held.Done():
			case <-testwait.Context(t).Done():
				t.Error("the loss of the lock is not noticed")
			}
			if cause := context.Cause(held); !errors.Is(cause, store.ErrLockLost) {
				t.Errorf("the lock ends because of %v", cause)
			}
			end()
			err = s.Update(t.Context(), func(tx *sql.Tx) error {
				return errors.Join(storetest.AppendNote(t)(tx), s.Announce(t.Context(), tx, "notes"))
			})
			if err != nil {
				t.Errorf("after the outage: %v", err)
			}
			if n := storetest.Count(t, s); n != 1 {
				t.Errorf("%d notes, want the one after the outage", n)
			}
			storetest.Receive(t, watcher) // or a notification of missed changes
			if _, again, err := s.Lock(t.Context(), "mine too"); err != nil {
				t.Error(err)
			} else {
				again()
			}
		})
	}
}

// TestLocksAndOutages: Lock succeeds right after an undetected outage. During an outage the error is not store.ErrLocked.
func TestLocksAndOutages(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	s := storetest.Open(t, server.Database(t))
	lock := func(ctx context.Context) error {
		_, release, err := s.Lock(ctx, "mine")
		if err == nil {
			release()
		}
		return err
	}
	if err := lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Stop(t)
	server.Start(t)
	if err := lock(t.Context()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	resume := server.Pause(t)
	if err := lock(soon); !errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrLocked) {
		t.Errorf("of a server that hangs: %v", err)
	}
	resume()
	server.Stop(t)
	if err := lock(soon); !errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrLocked) {
		t.Errorf("of a server that is away: %v", err)
	}
	server.Start(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lock(t.Context()); err == nil || postgres.HasLockConn(s) {
		t.Errorf("after Close: %v", err)
	}
}

// TestLostConnection: a transaction whose connection is lost before the commit runs again.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	times := 0
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		if times++; times == 1 {
			if _, err := tx.ExecContext(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())"); err != nil {
				return err
			}
		}
		return storetest.AppendNote(t)(tx)
	})
	if err != nil || times != 2 || storetest.Count(t, s) != 1 {
		t.Errorf("ran %d times, %v", times, err)
	}
}

// TestLostCommit: a transaction whose connection is lost during the commit does not run again, because its outcome is
// unknown.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM " +
			"pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
		"CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE " +
			"FUNCTION cut()",
	} {
		if err := storetest.Exec(t, s, statement); err != nil {
			t.Fatal(err)
		}
	}
	times := 0
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		times++
		return storetest.AppendNote(t)(tx)
	})
	if times != 1 || !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "may or may not be committed") {
		t.Errorf("ran %d times, %v", times, err)
	}
}

// TestLostAfterAConflict: a transaction that is lost after a conflict runs again, too.
func TestLostAfterAConflict(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	times := 0
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		times++
		statement := map[int]string{
			1: "DO $$ BEGIN RAISE EXCEPTION 'met another' USING ERRCODE = '40001'; END $$",
			2: "SELECT pg_terminate_backend(pg_backend_pid())", 3: "SELECT 1",
		}[times]
		_, err := tx.ExecContext(t.Context(), statement)
		return err
	})
	if err != nil || times != 3 {
		t.Errorf("ran %d times, %v", times, err)
	}
}

// TestStorm: transactions that conflict for too long fail with store.ErrLocked.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, postgrestest.Start(t))
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(),
			"DO $$ BEGIN RAISE EXCEPTION 'met another' USING ERRCODE = '40001'; END $$")
		return err
	})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Lock(ctx, "free"); err != nil {
		t.Error(err)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	where := server.Database(t)
	server.Exec(t, "CREATE ROLE hako LOGIN SUPERUSER PASSWORD 'right'")
	server.RequirePasswords(t, "hako")
	word := "wrong"
	o := &postgres.Options{Password: func(context.Context) (string, error) { return word, nil }}
	if s, err := postgres.Open(t.Context(), with(t, where, "hako", ""), o); err == nil {
		t.Error("a wrong password is taken", s.Close())
	} else if !errors.Is(err, store.ErrUnreachable) || strings.Contains(err.Error(), word) ||
		!strings.Contains(err.Error(), "postgres.password") {
		t.Errorf("got %v", err)
	}
	word = "right"
	s, err := postgres.Open(t.Context(), with(t, where, "hako", ""), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, release, err := s.Lock(t.Context(), "lock"); err != nil {
		t.Error(err)
	} else {
		release()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	s := storetest.Open(t, server.Database(t))
	h, err := s.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(h.Version, "1") || h.Latency <= 0 || h.Skew.Abs() > time.Minute || h.Connections < 1 ||
		h.MaxConnections != 300 ||
		h.ReadOnly || !h.CanCreate || !h.Local || h.Encrypted || h.Pooler {
		t.Errorf("%+v", h)
	}
	where, err := url.Parse(server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "CREATE ROLE simple LOGIN")
	server.Exec(t, "ALTER DATABASE "+strings.TrimPrefix(where.Path, "/")+" OWNER TO simple")
	other := storetest.Open(t, with(t, where.String(), "simple", ""))
	if seen, err := other.Health(t.Context()); err != nil || seen.Connections < 3 { // two of other, and one of s
		t.Errorf("as another user: %+v, %v", seen, err)
	}
	if h, err := storetest.Open(t, t.TempDir()).Health(t.Context()); h != nil || err != nil {
		t.Errorf("of a directory: %+v, %v", h, err)
	}
}

// TestFailover: a server that is read-only for a while, like a standby before its promotion.
func TestFailover(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	s := storetest.Open(t, server.Database(t))
	if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	until := func(what string, done func(error) bool) {
		t.Helper()
		var err error
		if !testwait.Until(t, func() bool { err = s.Update(t.Context(), storetest.AppendNote(t)); return done(err) }) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	server.Exec(t, "ALTER SYSTEM SET default_transaction_read_only = on")
	server.Exec(t, "SELECT pg_reload_conf()")
	until("a server that only reads", func(err error) bool { return errors.Is(err, store.ErrReadOnly) })
	if h, err := s.Health(t.Context()); err != nil || !h.ReadOnly {
		t.Errorf("%+v, %v", h, err)
	}
	before := storetest.Count(t, s) // reads still succeed
	server.Exec(t, "ALTER SYSTEM SET default_transaction_read_only = off")
	server.Exec(t, "SELECT pg_reload_conf()")
	until("afterwards", func(err error) bool { return err == nil })
	if n := storetest.Count(t, s); n != before+1 {
		t.Errorf("%d notes, want %d", n, before+1)
	}
}

// TestTurnOfAReplicaThatStandsStill: other replicas wait for a stalled one for some seconds. It cannot commit
// afterwards.
func TestTurnOfAReplicaThatStandsStill(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	still, other := storetest.Open(t, where), storetest.Open(t, where)
	if err := other.Migrate(t.Context(), "notes", storetest.Table); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err := still.UpdateInTurn(t.Context(), "notes", func(tx *sql.Tx) error {
		if runs++; runs == 1 {
			if err := other.UpdateInTurn(t.Context(), "notes", storetest.AppendNote(t)); err != nil {
				t.Errorf("another replica: %v", err)
			}
		}
		return storetest.AppendNote(t)(tx)
	})
	if err != nil || runs != 2 || storetest.Count(t, other) != 2 {
		t.Errorf("%v after %d runs, %d notes", err, runs, storetest.Count(t, other))
	}
}
