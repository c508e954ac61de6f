package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/internal/postgrestest"
)

const table = "CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"

func open(t *testing.T, where string) *Store {
	t.Helper()
	s, err := Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

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

func exec(t *testing.T, s *Store, query string, args ...any) error {
	t.Helper()
	return s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), query, args...)
		return err
	})
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM note").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		s := open(t, where)
		if err := s.Migrate(t.Context(), "notes", table); err != nil {
			t.Fatal(err)
		}
		if err := exec(t, s, "INSERT INTO note VALUES ($2, $1)", "kept", 1); err != nil {
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
		if n := count(t, open(t, where)); n != 1 {
			t.Errorf("%d rows after opening it again, want 1", n)
		}
	})
}

func TestDirectoryOfAnyName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "place with ?#%")
	if err := open(t, dir).Migrate(t.Context(), "notes", table); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, database)); err != nil {
		t.Error(err)
	}
}

// TestUpdatesHaveTheEffectOfOneAfterTheOther: a transaction that reads and then writes is not affected by a concurrent
// one.
func TestUpdatesHaveTheEffectOfOneAfterTheOther(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		first, second := open(t, where), open(t, where)
		if err := first.Migrate(t.Context(), "notes", table); err != nil {
			t.Fatal(err)
		}
		if err := exec(t, first, "INSERT INTO note VALUES (0, 'one for the count')"); err != nil {
			t.Fatal(err)
		}
		const each = 20
		var done sync.WaitGroup
		for i := range 8 {
			s := []*Store{first, second}[i%2]
			done.Go(func() {
				for range each {
					if err := s.Update(t.Context(), appendNote(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if n := count(t, first); n != 1+8*each {
			t.Errorf("%d rows, want %d", n, 1+8*each)
		}
	})
}

func TestUpdateInTurn(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		stores := []*Store{open(t, where), open(t, where)}
		if err := stores[0].Migrate(t.Context(), "notes", table); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var runs atomic.Int64
		for i := range 40 {
			done.Go(func() {
				err := stores[i%2].UpdateInTurn(t.Context(), "notes", func(tx *sql.Tx) error {
					runs.Add(1)
					return appendNote(t)(tx)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if n := count(t, stores[0]); n != 40 || runs.Load() != 40 {
			t.Errorf("%d rows by %d runs, want 40 by 40", n, runs.Load())
		}
	})
}

// appendNote counts the notes and inserts one with that number.
func appendNote(t *testing.T) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM note").Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(t.Context(), "INSERT INTO note VALUES ($1, 'x')", n)
		return err
	}
}

func TestNewDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hako.store")
	open(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if ignore, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || string(ignore) != "*\n" {
		t.Errorf(".gitignore holds %q, %v", ignore, err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	const second = "ALTER TABLE note ADD COLUMN author TEXT"
	tests := map[string]struct {
		steps []string
		want  string
		is    error
	}{
		"the same":         {steps: []string{table, second}},
		"one more":         {steps: []string{table, second, "CREATE TABLE other (id BIGINT)"}},
		"an older program": {steps: []string{table}},
		"another step": {steps: []string{table, second + " "},
			want: "step 2 of its notes differs from the applied one"},
		"an older, another step": {steps: []string{table + " "},
			want: "step 1 of its notes differs from the applied one"},
		"a step that fails": {steps: []string{table, second, "CREATE TABLE a (b TEXT)", "nonsense"},
			want: "step 4 of notes"},
		"another consumer":    {steps: nil},
		"two that do no harm": {steps: []string{table, second, "SELECT 1; SELECT 2"}},
	}
	over(t, func(t *testing.T, where string) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := open(t, places[filepath.Base(filepath.Dir(t.Name()))](t))
				if err := s.Migrate(t.Context(), "notes", table, second); err != nil {
					t.Fatal(err)
				}
				err := s.Migrate(t.Context(), "notes", test.steps...)
				if (err != nil) != (test.want != "" || test.is != nil) || test.is != nil && !errors.Is(err, test.is) ||
					err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q (%v)", err, test.want, test.is)
				}
				if err := s.Migrate(t.Context(), "notes", table, second); test.want == "step 4 of notes" && err != nil {
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
				if err := open(t, where).Migrate(t.Context(), "notes", table, test.step); err != nil {
					t.Fatal(err)
				}
				older := open(t, where)
				err := older.Migrate(t.Context(), "notes", table)
				if errors.Is(err, ErrNewer) == test.additive || err != nil &&
					!strings.Contains(err.Error(),
						"its notes are at step 2, and this hako knows 1: run the newer hako") {
					t.Fatalf("got %v", err)
				}
				if test.additive && exec(t, older, "INSERT INTO note (id, text) VALUES (1, 'x')") != nil {
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
				s, err := Open(t.Context(), where)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Migrate(t.Context(), "notes", table,
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
		first, second := open(t, where), open(t, where)
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
		for _, s := range []*Store{first, second} {
			if _, _, err := s.Lock(ctx, name); !errors.Is(err, ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
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
		held, release, err := open(t, where).Lock(ctx, "free")
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
		living, other := open(t, where), open(t, where)
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
		stores := []*Store{open(t, where), open(t, where), open(t, where)}
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

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	if err := first.Migrate(t.Context(), "notes", table); err != nil {
		t.Fatal(err)
	}
	impatient, err := sql.Open("sqlite3", source(first.name(), time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	second := &Store{engine: &sqlite{dir: dir, db: impatient}, end: func() {}}
	defer second.Close()
	err = first.Update(t.Context(), func(*sql.Tx) error {
		if n := count(t, second); n != 0 {
			t.Errorf("%d rows", n)
		}
		if err := open(t, dir).Migrate(t.Context(), "notes", table); err != nil {
			t.Errorf("it cannot be opened meanwhile: %v", err)
		}
		return exec(t, second, "INSERT INTO note VALUES (1, 'x')")
	})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "another process holds the lock") {
		t.Errorf("got %v", err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		damage func(dir string) error
		want   error
	}{
		"no database": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, database), []byte(strings.Repeat("text ", 1000)), 0o600)
		}, ErrCorrupt},
		"a directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, database), 0o700) }, ErrReadOnly},
		"cut off":     {cutOff, ErrCorrupt},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := test.damage(dir); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), dir)
			if err == nil {
				err = s.Migrate(t.Context(), "notes", table)
				_ = s.Close()
			}
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// cutOff creates a store without its second page.
func cutOff(dir string) error {
	s, err := Open(context.Background(), dir)
	if err != nil {
		return err
	}
	return errors.Join(s.Close(), os.Truncate(filepath.Join(dir, database), 4096+100))
}

// TestOpenTogether: processes that start at once with a new store all open it.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, where string) {
		var wait sync.WaitGroup
		for range 6 {
			wait.Go(func() {
				s, err := Open(t.Context(), where)
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
