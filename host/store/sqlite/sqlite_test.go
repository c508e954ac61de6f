package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/store"
)

const table = "CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"

func openDir(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDirectoryOfAnyName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "place with ?#%")
	if err := openDir(t, dir).Migrate(t.Context(), "notes", table); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, database)); err != nil {
		t.Error(err)
	}
}

func TestNewDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hako.store")
	openDir(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if ignore, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || string(ignore) != "*\n" {
		t.Errorf(".gitignore holds %q, %v", ignore, err)
	}
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := openDir(t, dir)
	if err := first.Migrate(t.Context(), "notes", table); err != nil {
		t.Fatal(err)
	}
	impatient, err := open(dir, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.New(t.Context(), impatient, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	err = first.Update(t.Context(), func(*sql.Tx) error {
		if n, err := store.List(t.Context(), second, store.Column[int], "SELECT count(*) FROM note"); err != nil || n[0] != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
		if err := openDir(t, dir).Migrate(t.Context(), "notes", table); err != nil {
			t.Errorf("it cannot be opened meanwhile: %v", err)
		}
		return second.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "INSERT INTO note VALUES (1, 'x')")
			return err
		})
	})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "another process holds the lock") {
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
		}, store.ErrCorrupt},
		"a directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, database), 0o700) }, store.ErrReadOnly},
		"cut off":     {cutOff, store.ErrCorrupt},
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
