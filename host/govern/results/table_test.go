package results_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

func openStore(t *testing.T, where string) *store.Store {
	t.Helper()
	s, err := drivers.Open(t.Context(), where, &drivers.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func open(t *testing.T, s *store.Store, o *results.Options) *results.Keeper {
	t.Helper()
	k, err := results.Open(t.Context(), o, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func exec(t *testing.T, s *store.Store, statement string, args ...any) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestReplicas: what one replica keeps the others read, for the same owner alone.
func TestReplicas(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	a, b := open(t, openStore(t, where), nil), open(t, openStore(t, where), nil)
	body := strings.Repeat("行\n", 300<<10)
	id := keep(t, a, "aki", text(body))
	if got, _, err := read(b, "aki", 0, `{"id":"`+id+`"}`); err != nil || got != body {
		t.Errorf("another replica reads %d bytes of %d, %v", len(got), len(body), err)
	}
	if _, _, err := read(b, "ben", 0, `{"id":"`+id+`"}`); err == nil || !strings.Contains(err.Error(), "you have no stored result") {
		t.Errorf("another caller is told %v", err)
	}
}

// TestDirectory: without a shared database results are in memory.
func TestDirectory(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	id := keep(t, open(t, s, nil), "aki", text(strings.Repeat("line\n", 1000)))
	if _, _, err := read(open(t, s, nil), "aki", limit, `{"id":"`+id+`"}`); err == nil {
		t.Error("another process reads it")
	}
}

// TestPartsAlone: a page of a large text is read although all parts but those of the page are gone.
func TestPartsAlone(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgrestest.Start(t))
	k := open(t, s, nil)
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, "行 %08d\n", i)
	}
	id := keep(t, k, "aki", text(b.String())) // 1.3 MB, 6 parts
	exec(t, s, "DELETE FROM kept_result_part WHERE number NOT IN (2, 3)")
	for arguments, want := range map[string]string{
		`"offset":50000,"limit":2`:                       "行 00050000\n行 00050001\n",
		`"offset":600003,"limit":10,"unit":"characters"`: "45\n行 00054",
	} {
		if got, note, err := read(k, "aki", limit, `{"id":"`+id+`",`+arguments+`}`); err != nil || got != want {
			t.Errorf("%s: %q, %s, %v", arguments, got, note, err)
		}
	}
	if _, _, err := read(k, "aki", limit, `{"id":"`+id+`"}`); err == nil || !strings.Contains(err.Error(), "you have no stored result") {
		t.Errorf("the first page, which is gone: %v", err)
	}
}

// TestExpiry: a result is gone when its time is over by the clock of the database, and Forget deletes it.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgrestest.Start(t))
	k, brief := open(t, s, nil), open(t, s, &results.Options{Lifetime: time.Millisecond})
	lasting := keep(t, k, "aki", text(strings.Repeat("line\n", 1000)))
	short := keep(t, brief, "aki", text(strings.Repeat("line\n", 1000)))
	gone := func() bool {
		_, _, err := read(k, "aki", limit, `{"id":"`+short+`"}`)
		return err != nil && strings.Contains(err.Error(), "you have no stored result")
	}
	if !testwait.Until(t, gone) {
		t.Error("it does not expire")
	}
	if err := k.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count, _, err := k.Size(t.Context()); err != nil || count != 1 {
		t.Errorf("%d results are left, %v", count, err)
	}
	if parts := count(t, s, "SELECT COUNT(*) FROM kept_result_part"); parts != 1 {
		t.Errorf("%d parts are left", parts)
	}
	if _, _, err := read(k, "aki", limit, `{"id":"`+lasting+`"}`); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, s *store.Store, query string, args ...any) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(tx *sql.Tx) error { return tx.QueryRowContext(t.Context(), query, args...).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSealed: the database has neither the texts nor the names of tools and callers, nor the IDs with which they could
// be read.
func TestSealed(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgrestest.Start(t))
	id := keep(t, open(t, s, nil), "aki@example.com", text(strings.Repeat("secret ", 1000)))
	for _, word := range []string{"secret", "aki@example.com", "list_rows", "text/plain", id} {
		for _, table := range []string{"kept_result", "kept_result_part"} {
			found := count(t, s, "SELECT COUNT(*) FROM "+table+" AS t WHERE position($1 in t::text) > 0 OR "+
				"position(encode(convert_to($1, 'UTF8'), 'hex') in t::text) > 0", word)
			if found > 0 {
				t.Errorf("%s is in %s", word, table)
			}
		}
	}
	if found := count(t, s, "SELECT COUNT(*) FROM kept_result AS t WHERE t::text LIKE '%x%'"); found != 1 {
		t.Error("the rows cannot be searched so")
	}
}

// TestHostileTable: who writes to the database cannot give a result to another caller or change it, and what is written
// does no more than end results.
func TestHostileTable(t *testing.T) {
	t.Parallel()
	large, other := strings.Repeat("line\n", 100<<10), strings.Repeat("other\n", 100<<10)
	for name, statement := range map[string]string{
		"given to another caller": "UPDATE kept_result SET owner = (SELECT owner FROM kept_result WHERE bytes < 10000)",
		"parts in another order": "UPDATE kept_result_part p SET body = COALESCE((SELECT body FROM kept_result_part o " +
			"WHERE o.result = p.result AND o.number = 1 - p.number), body)",
		"a part of another result":   "UPDATE kept_result_part p SET body = (SELECT body FROM kept_result_part o WHERE o.result <> p.result LIMIT 1) WHERE number = 0",
		"a byte that was changed":    "UPDATE kept_result_part SET body = set_byte(body, 100, 1 - get_byte(body, 100) % 2)",
		"an end that was cut off":    "UPDATE kept_result_part SET body = substr(body, 1, 1000)",
		"nothing in a part":          "UPDATE kept_result_part SET body = ''",
		"64 MiB in a part":           "UPDATE kept_result_part SET body = convert_to(repeat('x', 67108864), 'UTF8') WHERE number = 0",
		"nothing in a head":          "UPDATE kept_result SET head = ''",
		"the head of another result": "UPDATE kept_result SET head = (SELECT head FROM kept_result WHERE bytes < 10000)",
		"64 MiB in a head":           "UPDATE kept_result SET head = convert_to(repeat('x', 67108864), 'UTF8') WHERE bytes > 10000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, postgrestest.Start(t))
			k := open(t, s, nil)
			id := keep(t, k, "aki", text(large))
			keep(t, k, "aki", text(other))
			keep(t, k, "ben", text(strings.Repeat("line\n", 1000)))
			exec(t, s, statement)
			for _, owner := range []string{"aki", "ben"} {
				if got, _, err := read(k, owner, 0, `{"id":"`+id+`"}`); err == nil && got != large || err != nil &&
					!strings.Contains(err.Error(), "you have no stored result") {
					t.Errorf("%s reads %.40q, %v", owner, got, err)
				} else if err == nil && owner == "ben" {
					t.Error("another caller reads it")
				}
			}
			again := keep(t, k, "aki", text(large))
			if got, _, err := read(k, "aki", 0, `{"id":"`+again+`"}`); err != nil || got != large {
				t.Errorf("what is kept afterwards has %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestStoreFails: without its database a keeper says that nothing is kept, and the log has the reason.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgrestest.Start(t))
	var log bytes.Buffer
	k, err := results.Open(t.Context(), nil, s, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, s, "ALTER TABLE kept_result RENAME TO gone")
	r := text(strings.Repeat("line\n", 1000))
	if shortened, _ := k.Shorten(t.Context(), r, "list_rows", reader("aki"), limit); !shortened || len(r.Content) != 1 ||
		!strings.Contains(r.Content[0].Text, "it is not kept: hako's store does not respond") ||
		!strings.Contains(log.String(), "kept_result") {
		t.Errorf("%+.300v, log %s", r.Content, log.String())
	}
	if _, _, err := read(k, "aki", limit, `{"id":"x"}`); err == nil || strings.Contains(err.Error(), "you have no stored result") {
		t.Errorf("reading says %v", err)
	}
}

// TestReplicasKeepWithinLimits: replicas that keep at once keep to the limits together.
func TestReplicasKeepWithinLimits(t *testing.T) {
	t.Parallel()
	where := postgrestest.Start(t)
	limits := &results.Options{PerCaller: 30 << 10, Total: 60 << 10}
	a, b := open(t, openStore(t, where), limits), open(t, openStore(t, where), limits)
	var group sync.WaitGroup
	for i, k := range []*results.Keeper{a, b, a, b} {
		group.Go(func() {
			for range 10 {
				keep(t, k, fmt.Sprint("caller ", i/2), text(strings.Repeat("x", 9<<10)))
			}
		})
	}
	group.Wait()
	if count, size, err := a.Size(t.Context()); err != nil || count != 6 || size > 60<<10 {
		t.Errorf("%d results of %d bytes, %v", count, size, err)
	}
}
