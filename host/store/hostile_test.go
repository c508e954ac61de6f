//go:build unix

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/store"
)

// connectBeside connects as another client with hako's privileges.
func connectBeside(t *testing.T, where string) func(statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHostileDatabase: another client of the database cannot suppress notifications, and names are not executed as SQL.
func TestHostileDatabase(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]string{
		"10,000 announcements of nothing":        `SELECT pg_notify('hako', 'x' || n) FROM generate_series(1, 10000) n`,
		"10,000 of one topic":                    `SELECT pg_notify('hako', 'topic') FROM generate_series(1, 10000) n`,
		"1,000 of 7,900 bytes":                   `SELECT pg_notify('hako', n || repeat('x', 7900)) FROM generate_series(1, 1000) n`,
		"one of nothing":                         `SELECT pg_notify('hako', '')`,
		"one with control characters":            `SELECT pg_notify('hako', E'\x1b[2J\r\n')`,
		"one that is SQL":                        `SELECT pg_notify('hako', '''; DROP TABLE note; --')`,
		"replicas that there are not":            `INSERT INTO replica SELECT 'x' || n, E'host\x1b[2J', 'v', 0, 9223372036854775807 FROM generate_series(1, 10000) n`,
		"a replica that was never seen":          `INSERT INTO replica VALUES ('x', 'h', 'v', 9223372036854775807, -9223372036854775808)`,
		"migrations of nobody":                   `INSERT INTO migration SELECT 'x''; DROP TABLE note; --', n, 'x', 0 FROM generate_series(1, 10000) n`,
		"a table like one of the system's first": `CREATE TABLE pg_locks (x TEXT); CREATE TABLE pg_stat_activity (x TEXT)`,
		"functions like the system's":            `CREATE FUNCTION now(TEXT) RETURNS TEXT LANGUAGE sql AS 'SELECT ''never'''; CREATE FUNCTION pg_notify(TEXT) RETURNS TEXT LANGUAGE sql AS 'SELECT ''x'''`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			a, b := storetest.Open(t, where), storetest.Open(t, where)
			if err := a.Migrate(t.Context(), "notes", storetest.Table); err != nil {
				t.Fatal(err)
			}
			rings := b.Changes(t.Context(), "real")
			<-rings
			connectBeside(t, where)(flood)
			if err := a.UpdateInTurn(t.Context(), "turn", storetest.AppendNote(t)); err != nil {
				t.Fatal(err)
			}
			err := a.Update(t.Context(), func(tx *sql.Tx) error { return a.Announce(t.Context(), tx, "real") })
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-rings:
			case <-testwait.Context(t).Done():
				t.Error("the replica is not told")
			}
			if err := b.Join(t.Context(), "test"); err != nil {
				t.Error(err)
			}
			if n := storetest.Count(t, b); n != 1 {
				t.Errorf("%d notes", n)
			}
			if took := time.Since(b.Time()).Abs(); took > time.Hour {
				t.Errorf("the time is %v off", took)
			}
		})
	}
	for _, name := range []string{"'; DROP TABLE note; --", "a\x00b", strings.Repeat("x", 5000),
		"\xff\xfe", "", "$1", `\`} {
		t.Run(fmt.Sprintf("a name of a lock that is %.30q", name), func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			a, b := storetest.Open(t, where), storetest.Open(t, where)
			if err := a.Migrate(t.Context(), "notes", storetest.Table); err != nil {
				t.Fatal(err)
			}
			_, release, err := a.Lock(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, _, err := b.Lock(short, name); !errors.Is(err, store.ErrLocked) {
				t.Errorf("it is taken twice: %v", err)
			}
			if _, other, err := b.Lock(t.Context(), name+" other"); err != nil {
				t.Error(err)
			} else {
				other()
			}
			release()
			if err := b.UpdateInTurn(t.Context(), name, storetest.AppendNote(t)); err != nil {
				t.Error(err)
			}
		})
	}
	for name, change := range map[string]string{
		"a step that was applied is another": `UPDATE migration SET checksum = 'x' WHERE consumer = 'notes'`,
		"a step of a newer program":          `INSERT INTO migration VALUES ('notes', 2, 'x', 0)`,
		"100,000 steps":                      `INSERT INTO migration SELECT 'notes', n, 'x', 0 FROM generate_series(2, 100000) n`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			if err := storetest.Open(t, where).Migrate(t.Context(), "notes", storetest.Table); err != nil {
				t.Fatal(err)
			}
			connectBeside(t, where)(change)
			if err := storetest.Open(t, where).Migrate(t.Context(), "notes", storetest.Table); err == nil ||
				!strings.Contains(err.Error(), "notes") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a lock that is never released", func(t *testing.T) {
		t.Parallel()
		where := postgrestest.Start(t)
		a, b := storetest.Open(t, where), storetest.Open(t, where)
		if err := a.Migrate(t.Context(), "notes", storetest.Table); err != nil {
			t.Fatal(err)
		}
		connectBeside(t, where)("BEGIN; LOCK TABLE note IN ACCESS EXCLUSIVE MODE")
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := a.Update(short, storetest.AppendNote(t)); err == nil {
			t.Error("it is written all the same")
		}
		if _, release, err := b.Lock(t.Context(), "other"); err != nil {
			t.Error(err)
		} else {
			release()
		}
	})
}

// TestHostileReplicas: rows of replicas that there are not do not fill the list, and are deleted.
func TestHostileReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows string
		most int // of the list
	}{
		"seen in the far future": {`SELECT 'x' || n, 'h', 'v', 0, 9223372036854775807 FROM generate_series(1, 10) n`,
			0},
		"100,000 that live": {`SELECT 'x' || n, 'h', 'v', 0, (extract(epoch FROM now()) * 1000)::bigint
			FROM generate_series(1, 100000) n`, store.MaxReplicas},
		"a host of 8 MB": {`SELECT 'x', repeat('h', 8000000), 'v', 0, (extract(epoch FROM now()) * 1000)::bigint`,
			0},
		"a version of 8 MB": {`SELECT 'x', 'h', repeat('v', 8000000), 0, (extract(epoch FROM now()) * 1000)::bigint`,
			0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := postgrestest.Start(t)
			s := storetest.Open(t, where)
			connectBeside(t, where)(`INSERT INTO replica ` + test.rows)
			list, err := s.Replicas(t.Context())
			if err != nil || len(list) > test.most {
				t.Fatalf("%d replicas, %v", len(list), err)
			}
			if err := s.ForgetReplicas(t.Context()); err != nil {
				t.Fatal(err)
			}
			left := 0
			err = s.View(t.Context(), func(tx *sql.Tx) error {
				return tx.QueryRowContext(t.Context(),
					`SELECT count(*) FROM replica WHERE seen > 9000000000000000000`).Scan(&left)
			})
			if err != nil || left > 0 {
				t.Errorf("%d rows with times to come, %v", left, err)
			}
		})
	}
}
