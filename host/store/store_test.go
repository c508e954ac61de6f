package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const table = "CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
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
	dir := filepath.Join(t.TempDir(), "new", "place with ?#%")
	s := open(t, dir)
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
	if n := count(t, open(t, dir)); n != 1 {
		t.Errorf("%d rows after opening it again, want 1", n)
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
		"the same":            {steps: []string{table, second}},
		"one more":            {steps: []string{table, second, "CREATE TABLE other (id BIGINT)"}},
		"an older program":    {steps: []string{table}, is: ErrNewer, want: "its notes are at step 2, and this hako knows 1: run the newer one"},
		"another step":        {steps: []string{table, second + " "}, want: "step 2 of its notes is not the one that was applied"},
		"a step that fails":   {steps: []string{table, second, "CREATE TABLE a (b TEXT)", "nonsense"}, want: "step 4 of notes"},
		"another consumer":    {steps: nil, is: ErrNewer},
		"two that do no harm": {steps: []string{table, second, "SELECT 1; SELECT 2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			if err := s.Migrate(t.Context(), "notes", table, second); err != nil {
				t.Fatal(err)
			}
			err := s.Migrate(t.Context(), "notes", test.steps...)
			if (err != nil) != (test.want != "" || test.is != nil) || test.is != nil && !errors.Is(err, test.is) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q (%v)", err, test.want, test.is)
			}
			if err := s.Migrate(t.Context(), "notes", table, second); test.want == "step 4 of notes" && err != nil {
				t.Errorf("the failed migration left something: %v", err)
			}
		})
	}
}

// Two stores over one directory are two processes to SQLite and to the locks.
func TestLockIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	release, err := first.Lock(t.Context(), "credential/../日本 語")
	if err != nil {
		t.Fatal(err)
	}
	other, err := second.Lock(t.Context(), "another")
	if err != nil {
		t.Fatalf("another name: %v", err)
	}
	defer other()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := second.Lock(ctx, "credential/../日本 語"); !errors.Is(err, ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	time.AfterFunc(lockPoll, release)
	again, err := second.Lock(t.Context(), "credential/../日本 語")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	if err := first.Migrate(t.Context(), "notes", table); err != nil {
		t.Fatal(err)
	}
	impatient, err := sql.Open("sqlite3", source(first.path(), time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	second := &Store{dir: dir, db: impatient}
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
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "another process holds it") {
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

// cutOff makes a store whose second page is missing.
func cutOff(dir string) error {
	s, err := Open(context.Background(), dir)
	if err != nil {
		return err
	}
	return errors.Join(s.Close(), os.Truncate(filepath.Join(dir, database), 4096+100))
}
