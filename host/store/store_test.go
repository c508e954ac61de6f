package store_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// lockPoll is longer than the interval at which a directory tries to acquire a lock.
const lockPoll = 20 * time.Millisecond

// places are the kinds of stores for tests. Each function creates an empty store and returns its location.
var places = map[string]func(*testing.T) string{
	"sqlite":    func(t *testing.T) string { return t.TempDir() },
	"postgres":  func(t *testing.T) string { return postgrestest.Start(t) },
	"pgbouncer": func(t *testing.T) string { return postgrestest.Pooled(t, postgrestest.Start(t), "session") },
}

// over runs a test with an empty store of each kind.
func over(t *testing.T, test func(t *testing.T, where string)) {
	t.Helper()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := storetest.Open(t, where)
		if err := s.Migrate(t.Context(), "notes", storetest.Table); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Exec(t, s, "INSERT INTO note VALUES ($2, $1)", "kept", 1); err != nil {
			t.Fatal(err)
		}
		own := errors.New("own")
		err := s.Update(t.Context(), func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO note VALUES (2, 'lost')"); err != nil {
				t.Error(err)
			}
			return own
		})
		if !errors.Is(err, own) {
			t.Errorf("got %v, want the function's own error", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n := storetest.Count(t, storetest.Open(t, where)); n != 1 {
			t.Errorf("%d rows after opening it again, want 1", n)
		}
	})
}

// TestUpdatesHaveTheEffectOfOneAfterTheOther: a transaction that reads and then writes is not affected by a concurrent
// one.
func TestUpdatesHaveTheEffectOfOneAfterTheOther(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		first, second := storetest.Open(t, where), storetest.Open(t, where)
		if err := first.Migrate(t.Context(), "notes", storetest.Table); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Exec(t, first, "INSERT INTO note VALUES (0, 'one for the count')"); err != nil {
			t.Fatal(err)
		}
		const each = 20
		var done sync.WaitGroup
		for i := range 8 {
			s := []*store.Store{first, second}[i%2]
			done.Go(func() {
				for range each {
					if err := s.Update(t.Context(), storetest.AppendNote(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if n := storetest.Count(t, first); n != 1+8*each {
			t.Errorf("%d rows, want %d", n, 1+8*each)
		}
	})
}

func TestUpdateInTurn(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		stores := []*store.Store{storetest.Open(t, where), storetest.Open(t, where)}
		if err := stores[0].Migrate(t.Context(), "notes", storetest.Table); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var runs atomic.Int64
		for i := range 40 {
			done.Go(func() {
				err := stores[i%2].UpdateInTurn(t.Context(), "notes", func(tx *sql.Tx) error {
					runs.Add(1)
					return storetest.AppendNote(t)(tx)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if n := storetest.Count(t, stores[0]); n != 40 || runs.Load() != 40 {
			t.Errorf("%d rows by %d runs, want 40 by 40", n, runs.Load())
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	const second = "ALTER TABLE note ADD COLUMN author TEXT"
	tests := map[string]struct {
		steps []string
		want  string
		is    error
	}{
		"the same":         {steps: []string{storetest.Table, second}},
		"one more":         {steps: []string{storetest.Table, second, "CREATE TABLE other (id BIGINT)"}},
		"an older program": {steps: []string{storetest.Table}},
		"another step": {steps: []string{storetest.Table, second + " "},
			want: "step 2 of its notes differs from the applied one"},
		"an older, another step": {steps: []string{storetest.Table + " "},
			want: "step 1 of its notes differs from the applied one"},
		"a step that fails": {steps: []string{storetest.Table, second, "CREATE TABLE a (b TEXT)", "nonsense"},
			want: "step 4 of notes"},
		"another consumer":    {steps: nil},
		"two that do no harm": {steps: []string{storetest.Table, second, "SELECT 1; SELECT 2"}},
	}
	over(t, func(t *testing.T, where string) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := storetest.Open(t, places[filepath.Base(filepath.Dir(t.Name()))](t))
				if err := s.Migrate(t.Context(), "notes", storetest.Table, second); err != nil {
					t.Fatal(err)
				}
				err := s.Migrate(t.Context(), "notes", test.steps...)
				if (err != nil) != (test.want != "" || test.is != nil) || test.is != nil && !errors.Is(err, test.is) ||
					err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q (%v)", err, test.want, test.is)
				}
				if err := s.Migrate(t.Context(), "notes", storetest.Table, second); test.want == "step 4 of notes" && err != nil {
					t.Errorf("the failed migration left something: %v", err)
				}
			})
		}
	})
}

// TestOlderProgramBesideANewerOne: both versions work while a newer program replaces an older one.
func TestOlderProgramBesideANewerOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		step     string
		additive bool
	}{
		"a table":              {"CREATE TABLE other (id BIGINT NOT NULL UNIQUE)", true},
		"a column":             {"ALTER TABLE note ADD COLUMN author TEXT", true},
		"one with a default":   {"ALTER TABLE note ADD COLUMN size BIGINT NOT NULL DEFAULT 0", true},
		"an index":             {"CREATE INDEX note_text ON note (text)", true},
		"a table and an index": {"CREATE TABLE other (id BIGINT); CREATE INDEX other_id ON other (id);", true},
		"a unique index":       {"CREATE UNIQUE INDEX note_text ON note (text)", false},
		"a column less":        {"ALTER TABLE note DROP COLUMN text", false},
		"another name":         {"ALTER TABLE note RENAME COLUMN text TO body", false},
		"a table less":         {"CREATE TABLE other (id BIGINT); DROP TABLE note", false},
		"other contents":       {"UPDATE note SET text = ''", false},
		"a column with a rule": {"ALTER TABLE note ADD COLUMN size BIGINT CHECK (size > 0)", false},
		"a rule for a default": {"ALTER TABLE note ADD COLUMN size BIGINT NOT NULL DEFAULT 1 CHECK (size > 0)", false},
	}
	over(t, func(t *testing.T, where string) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				where := places[filepath.Base(filepath.Dir(t.Name()))](t)
				if err := storetest.Open(t, where).Migrate(t.Context(), "notes", storetest.Table, test.step); err != nil {
					t.Fatal(err)
				}
				older := storetest.Open(t, where)
				err := older.Migrate(t.Context(), "notes", storetest.Table)
				if errors.Is(err, store.ErrNewer) == test.additive || err != nil &&
					!strings.Contains(err.Error(),
						"its notes are at step 2, and this hako knows 1: run the newer hako") {
					t.Fatalf("got %v", err)
				}
				if test.additive && storetest.Exec(t, older, "INSERT INTO note (id, text) VALUES (1, 'x')") != nil {
					t.Error("the older program cannot write")
				}
			})
		}
	})
}

// TestMigrationsAtOnce: replicas may migrate concurrently.
func TestMigrationsAtOnce(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		var done sync.WaitGroup
		for range 6 {
			done.Go(func() {
				s, err := drivers.Open(t.Context(), where, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Migrate(t.Context(), "notes", storetest.Table,
					"ALTER TABLE note ADD COLUMN author TEXT"); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	})
}

// TestLockIsSharedByProcesses: two Stores at one location exclude each other like two processes.
func TestLockIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		const name = "credential/../日本 語"
		first, second := storetest.Open(t, where), storetest.Open(t, where)
		held, release, err := first.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		_, other, err := second.Lock(t.Context(), "another")
		if err != nil {
			t.Fatalf("another name: %v", err)
		}
		defer other()
		ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
		defer cancel()
		for _, s := range []*store.Store{first, second} {
			if _, _, err := s.Lock(ctx, name); !errors.Is(err, store.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		if held.Err() != nil {
			t.Error("the lock has ended")
		}
		time.AfterFunc(lockPoll, release)
		_, again, err := second.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if held.Err() == nil {
			t.Error("the lock has not ended")
		}
		again()
	})
}

// TestLockThatIsFreeNeedsNoPatience: Lock makes an attempt even if ctx has ended, so a free lock is always acquired.
func TestLockThatIsFreeNeedsNoPatience(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		held, release, err := storetest.Open(t, where).Lock(ctx, "free")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		<-ctx.Done()
		if held.Err() != nil {
			t.Error("the lock ends with the wait for it")
		}
	})
}

// TestLockDead: the lock of a living process is left alone, that of a dead one is acquired.
func TestLockDead(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		living, other := storetest.Open(t, where), storetest.Open(t, where)
		_, dies, err := living.Lock(t.Context(), "process 1")
		if err != nil {
			t.Fatal(err)
		}
		if release, err := other.LockDead(t.Context(), "process 1"); release != nil || err != nil {
			t.Errorf("of a living process: %t, %v", release != nil, err)
		}
		dies()
		release, err := other.LockDead(t.Context(), "process 1")
		if release == nil || err != nil {
			t.Fatalf("of a dead process: %t, %v", release != nil, err)
		}
		release()
	})
}

func TestLockHammer(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		stores := []*store.Store{storetest.Open(t, where), storetest.Open(t, where), storetest.Open(t, where)}
		var inside, times atomic.Int64
		var done sync.WaitGroup
		for i := range 9 {
			done.Go(func() {
				_, release, err := stores[i%3].Lock(t.Context(), "one")
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				time.Sleep(time.Millisecond)
				times.Add(1)
				inside.Add(-1)
				release()
			})
		}
		done.Wait()
		if n := times.Load(); n != 9 {
			t.Errorf("%d had the lock, want 9", n)
		}
	})
}

// TestOpenTogether: processes that start at once with a new store all open it.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		var wait sync.WaitGroup
		for range 6 {
			wait.Go(func() {
				s, err := drivers.Open(t.Context(), where, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	})
}
