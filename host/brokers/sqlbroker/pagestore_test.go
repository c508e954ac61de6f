//go:build unix

package sqlbroker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/pdk/abi"
)

// newPageStore opens a store and a PageStore in it, like one replica.
func newPageStore(t testing.TB, url string) *PageStore {
	t.Helper()
	s, err := drivers.Open(t.Context(), url, &drivers.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p, err := NewPageStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const counter = "INSERT INTO item VALUES (1, 0)"

// replicas returns brokers of one plugin, each with its own PageStore on one database.
func replicas(t testing.TB, url string, n int, migrations ...string) []*Broker {
	t.Helper()
	var list []*Broker
	for range n {
		b := New(&grant.SQL{Migrations: append([]string{item}, migrations...), Quota: 4 << 20},
			Options{Dir: "p", PageStore: newPageStore(t, url)})
		t.Cleanup(func() { _ = b.Close() })
		list = append(list, b)
	}
	return list
}

func TestPageStore(t *testing.T) {
	t.Parallel()
	brokers := replicas(t, postgrestest.Start(t), 2)
	a, b := newGuest(t, brokers[0], "Acme"), newGuest(t, brokers[1], "Acme")
	a.wants("exec", `{"sql":"INSERT INTO item VALUES (1, 'x')"}`, `"changes":1`)
	b.wants("query", `{"sql":"SELECT value FROM item"}`, `[["x"]]`)
	b.wants("exec", `{"sql":"UPDATE item SET value = 'y'"}`, `"changes":1`)
	a.wants("query", `{"sql":"SELECT value FROM item"}`, `[["y"]]`)
	newGuest(t, brokers[1], "").wants("query", `{"sql":"SELECT count(*) FROM item"}`, `[[0]]`)
	for range 30 {
		if got := a.send("exec", `{"sql":"INSERT INTO item (value) VALUES (zeroblob(200000))"}`,
			""); strings.Contains(got, "quota of 4194304 bytes") {
			b.wants("query", `{"sql":"PRAGMA integrity_check"}`, `[["ok"]]`)
			b.wants("exec", `{"sql":"DELETE FROM item WHERE id > 4"}`, `"changes"`)
			a.wants("exec", `{"sql":"INSERT INTO item (value) VALUES (zeroblob(200000))"}`, `"changes":1`)
			return
		}
	}
	t.Error("the quota does not hold")
}

// TestCommitIsGuarded: a commit based on an old version, as after a lost lock, changes nothing.
func TestCommitIsGuarded(t *testing.T) {
	t.Parallel()
	p, ctx := newPageStore(t, postgrestest.Start(t)), t.Context()
	page := func(b byte) []database.Page { return []database.Page{{Number: 1, Data: bytes.Repeat([]byte{b}, 4096)}} }
	for i, c := range []struct {
		version int64
		want    error
	}{{0, nil}, {0, database.ErrChanged}, {1, nil}, {1, database.ErrChanged}, {3, database.ErrChanged}} {
		if err := p.Commit(ctx, "x", c.version, 1, page(byte(i))); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, want %v", i, err, c.want)
		}
	}
	s, err := p.Snapshot(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pages, err := s.Read(ctx, 1, 1)
	if err != nil || s.Version() != 2 || len(pages) != 1 || pages[0].Data[0] != 2 {
		t.Errorf("version %d, %v", s.Version(), err)
	}
}

// TestCommitRunsAgain: a commit that is retried after a serialization failure is complete.
func TestCommitRunsAgain(t *testing.T) {
	t.Parallel()
	url := postgrestest.Start(t)
	p, ctx := newPageStore(t, url), t.Context()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const pages = maxRows + 10 // in two statements, of which the second one fails once
	for _, statement := range []string{
		"CREATE SEQUENCE attempts",
		`CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('attempts') = 2 THEN RAISE EXCEPTION 'met another' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$`,
		"CREATE TRIGGER meet AFTER INSERT ON plugin_page FOR EACH STATEMENT EXECUTE FUNCTION meet()",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	var all []database.Page
	for i := range int64(pages) {
		all = append(all, database.Page{Number: i + 1, Data: bytes.Repeat([]byte{byte(i)}, 4096)})
	}
	if err := p.Commit(ctx, "x", 0, pages, all); err != nil {
		t.Fatal(err)
	}
	s, err := p.Snapshot(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if kept, err := s.Read(ctx, 1, pages); err != nil || len(kept) != pages {
		t.Errorf("%d of %d pages are there, %v", len(kept), pages, err)
	}
}

// TestFewConnections: a writer gets a connection while snapshots use the others, even in a small pool.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	s, err := drivers.Open(t.Context(), postgrestest.Start(t), &drivers.Options{Dir: t.TempDir(), Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := NewPageStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	b := New(&grant.SQL{Migrations: []string{item, counter}, Quota: 4 << 20}, Options{Dir: "p", PageStore: p})
	defer b.Close()
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			newGuest(t, b, fmt.Sprint(i)).wants("exec", `{"sql":"UPDATE item SET value = value + 1"}`, `"changes":1`)
		})
	}
	wait.Wait()
}

// TestReadersSeeOneVersion: a reader sees one version while others commit.
func TestReadersSeeOneVersion(t *testing.T) {
	t.Parallel()
	brokers := replicas(t, postgrestest.Start(t), 2)
	a, b := newGuest(t, brokers[0], ""), newGuest(t, brokers[1], "")
	a.wants("exec", `{"sql":"INSERT INTO item (value) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 500) SELECT randomblob(4000) FROM c"}`, `"changes":500`)
	if got := b.do("begin", 0); len(got) > 0 {
		t.Fatalf("%s", got)
	}
	b.wants("query", `{"sql":"SELECT value IS NULL FROM item WHERE id = 1"}`, `[[0]]`)
	a.wants("exec", `{"sql":"UPDATE item SET value = NULL"}`, `"changes":500`)
	b.wants("query", `{"sql":"SELECT count(value) FROM item"}`, `[[500]]`)
	if got := b.do("commit"); len(got) > 0 {
		t.Fatalf("%s", got)
	}
	b.wants("query", `{"sql":"SELECT count(value) FROM item"}`, `[[0]]`)
}

func TestReplicasRaceForMigrations(t *testing.T) {
	t.Parallel()
	brokers := replicas(t, postgrestest.Start(t), 3, counter, "ALTER TABLE item ADD COLUMN more")
	var wait sync.WaitGroup
	for _, b := range brokers {
		wait.Go(func() {
			newGuest(t, b, "").wants("query", `{"sql":"SELECT count(*) FROM hako_migration"}`, `[[3]]`)
		})
	}
	wait.Wait()
}

// increment adds one to the counter in a transaction that reads first, and reports whether the commit succeeded.
func increment(g *guest) bool {
	if len(g.do("begin", 1)) > 0 {
		return false
	}
	got := g.send("query", `{"sql":"SELECT value FROM item WHERE id = 1"}`, "")
	var n int
	if _, err := fmt.Sscanf(got, `{"columns":["value"],"rows":[[%d]]}`, &n); err != nil {
		g.do("rollback")
		return false
	}
	if got = g.send("exec", fmt.Sprintf(`{"sql":"UPDATE item SET value = %d WHERE id = 1"}`, n+1),
		""); !strings.Contains(got, `"changes":1`) {
		g.do("rollback")
		return false
	}
	return len(g.do("commit")) == 0
}

func TestNoIncrementIsLost(t *testing.T) {
	t.Parallel()
	brokers := replicas(t, postgrestest.Start(t), 2, counter)
	const callers, times = 4, 10
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			for range times {
				g := newGuest(t, brokers[i%2], "")
				for !increment(g) {
				}
			}
		})
	}
	wait.Wait()
	newGuest(t, brokers[0], "").wants("query", `{"sql":"SELECT value FROM item"}`, fmt.Sprintf(`[[%d]]`, callers*times))
}

// TestWritersTakeTurns: a writer waits for writers at other replicas.
func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	brokers := replicas(t, postgrestest.Start(t), 2, counter)
	a, b := newGuest(t, brokers[0], ""), newGuest(t, brokers[1], "")
	b.wants("query", `{"sql":"SELECT value FROM item"}`, `[[0]]`)
	if got := a.do("begin", 1); len(got) > 0 {
		t.Fatalf("%s", got)
	}
	s := brokers[1].session(b.call)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.db.Begin(soon, true); err == nil || err.Code != abi.CodeTimeout {
		t.Errorf("got %v", err)
	}
	if got := a.do("commit"); len(got) > 0 {
		t.Fatalf("%s", got)
	}
	if err := s.db.Begin(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// TestProcess is the child process of TestKilled. It counts until it is killed and prints each committed value.
func TestProcess(t *testing.T) {
	url := os.Getenv("HAKO_TEST_PLACE")
	if url == "" {
		return
	}
	b := replicas(t, url, 1, counter)[0]
	for {
		g := newGuest(t, b, "")
		if increment(g) {
			fmt.Println("counted")
		}
		_ = g.call.Close()
	}
}

// TestKilled: a process that is killed during commits leaves complete transactions, all that it has printed, and no
// locks.
func TestKilled(t *testing.T) {
	t.Parallel()
	url := postgrestest.Start(t)
	b := replicas(t, url, 1, counter)[0]
	newGuest(t, b, "").wants("query", `{"sql":"SELECT value FROM item"}`, `[[0]]`)
	told, kills := 0, 5
	for i := range kills {
		process := exec.Command(os.Args[0], "-test.run=^TestProcess$")
		process.Env = append(os.Environ(), "HAKO_TEST_PLACE="+url)
		out, err := process.StdoutPipe()
		if err == nil {
			err = process.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for lines := bufio.NewScanner(out); lines.Scan(); n++ {
			if n == 10+i { // the next one is running
				_ = process.Process.Kill()
			}
		}
		_ = process.Wait()
		told += n
	}
	g := newGuest(t, b, "")
	g.wants("query", `{"sql":"PRAGMA integrity_check"}`, `[["ok"]]`)
	got := g.send("query", `{"sql":"SELECT value FROM item"}`, "")
	var n int
	if _, err := fmt.Sscanf(got, `{"columns":["value"],"rows":[[%d]]}`, &n); err != nil || n < told ||
		n > told+kills || told == 0 {
		t.Errorf("the counter is at %s, and %d were told of", got, told)
	}
	start := time.Now()
	if !increment(newGuest(t, b, "")) {
		t.Error("the killed process still holds something")
	}
	t.Logf("%d told, %d counted; next write after %v", told, n, time.Since(start))
}

func TestOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	b := replicas(t, server.Database(t), 1, counter)[0]
	g := newGuest(t, b, "")
	g.wants("query", `{"sql":"SELECT value FROM item"}`, `[[0]]`)
	if got := g.do("begin", 1); len(got) > 0 {
		t.Fatalf("%s", got)
	}
	g.wants("exec", `{"sql":"UPDATE item SET value = 1"}`, `"changes":1`)
	server.Kill()
	if got := string(g.do("commit")); !strings.Contains(got, `"code":"busy"`) ||
		!strings.Contains(got, "is unreachable") {
		t.Errorf("commit gives %s", got)
	}
	g.wants("query", `{"sql":"SELECT value FROM item"}`, `"code":"busy"`)
	server.Start(t)
	if !testwait.Until(t,
		func() bool { return strings.Contains(g.send("query", `{"sql":"SELECT value FROM item"}`, ""), `[[0]]`) }) {
		t.Fatal(g.send("query", `{"sql":"SELECT value FROM item"}`, ""))
	}
	if !increment(newGuest(t, b, "")) {
		t.Error("no write after the outage")
	}
}

// BenchmarkIncrement compares the storage of databases.
func BenchmarkIncrement(b *testing.B) {
	for _, where := range []string{"file", "PostgreSQL"} {
		b.Run(where, func(b *testing.B) {
			options := Options{Dir: b.TempDir()}
			if where != "file" {
				options.PageStore = newPageStore(b, postgrestest.Start(b))
			}
			broker := New(&grant.SQL{Migrations: []string{item, counter}, Quota: 4 << 20}, options)
			defer broker.Close()
			benchGuest(b, broker)
		})
	}
}

func benchGuest(b *testing.B, broker *Broker) {
	g := newGuest(b, broker, "")
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			g.wants("query", `{"sql":"SELECT value FROM item WHERE id = 1"}`, "rows")
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			g.wants("exec", `{"sql":"UPDATE item SET value = value + 1 WHERE id = 1"}`, `"changes":1`)
		}
	})
}
