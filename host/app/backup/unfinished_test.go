package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hako-run/hako/host/app/backup"
)

// leave makes a file in a temporary directory of a process that was killed a day ago, unless it is young.
func leave(t *testing.T, dir, name string, young bool) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "hako.db")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, !young, file, path)
	return path
}

func age(t *testing.T, old bool, paths ...string) {
	t.Helper()
	now := time.Now()
	if old {
		now = now.Add(-25 * time.Hour)
	}
	for _, path := range paths {
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// TestLeftovers: what killed backups and restores have left is removed by a later one, once it is old, and
// nothing else.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "a [b]*")
	old := leave(t, parent, ".hako-backup-unfinished-1", false)
	young := leave(t, parent, ".hako-backup-unfinished-2", true)
	others := leave(t, parent, ".hako-backup-20261101", false)
	to := filepath.Join(parent, "backup")
	if _, err := backup.Create(t.Context(), dataDir(t), to); err != nil {
		t.Fatal(err)
	}
	if exists(old) || !exists(young) || !exists(others) {
		t.Errorf("old: %v, young: %v, somebody's own: %v", exists(old), exists(young), exists(others))
	}
	data := filepath.Join(parent, "data")
	old, young = leave(t, data, ".restore-1", false), leave(t, data, ".restore-2", true)
	if _, err := backup.Restore(t.Context(), to, data); err != nil {
		t.Fatal(err)
	}
	if err := backup.CheckRestored(data); err != nil || exists(old) || !exists(young) {
		t.Errorf("%v; old: %v, young: %v", err, exists(old), exists(young))
	}
}

// TestInterruptedRestore: data of which a killed restore has put only a part in place is not used, and not forgotten.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	dir := leave(t, data, ".restore-1", false)
	marker := filepath.Join(dir, "moving")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, true, marker, dir)
	if err := backup.CheckRestored(data); !errors.Is(err, backup.ErrUnfinished) || !exists(marker) {
		t.Errorf("got %v", err)
	}
	if _, err := backup.Restore(t.Context(), create(t, dataDir(t)), data); !errors.Is(err, backup.ErrUnfinished) {
		t.Errorf("a second restore: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "hako.db")); err != nil { // everything is in place
		t.Fatal(err)
	}
	age(t, true, dir)
	if err := backup.CheckRestored(data); err != nil || exists(dir) {
		t.Errorf("after the last move: %v, %v", err, exists(dir))
	}
}
