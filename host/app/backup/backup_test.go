package backup_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/pdk/abi"
)

var paths = []string{"hako.db", "plugins/notes/@default.db", "plugins/notes/acme.db"}

// dataDir makes a host's directory whose databases hold their own names. They stay open until the test ends.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hako.store")
	for _, path := range paths {
		db, err := database.Open(t.Context(), database.Options{
			Path: filepath.Join(dir, filepath.FromSlash(path)), Migrations: []string{"CREATE TABLE a (b)"},
			Quota: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if r := db.Session(nil).Exec(t.Context(),
			&abi.SQLStatement{SQL: "INSERT INTO a VALUES (?)", Args: []any{path}}); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	for _, other := range []string{"secrets.key", "plugins/notes/tmp-1"} {
		if err := os.WriteFile(filepath.Join(dir, other), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func create(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup")
	files, err := backup.Create(t.Context(), data, to)
	if err != nil || len(files) != len(paths) {
		t.Fatal(files, err)
	}
	return to
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	to := create(t, dataDir(t))
	if _, err := os.Stat(filepath.Join(to, "secrets.key")); err == nil {
		t.Error("the key is in the backup")
	}
	restored := filepath.Join(t.TempDir(), "new", "hako.store")
	files, err := backup.Restore(t.Context(), to, restored)
	if err != nil || len(files) != len(paths) {
		t.Fatal(files, err)
	}
	for i, path := range paths {
		if files[i].Path != path {
			t.Errorf("file %d is %s", i, files[i].Path)
		}
		db, err := database.Open(t.Context(), database.Options{
			Path: filepath.Join(restored, filepath.FromSlash(path)), Migrations: []string{"CREATE TABLE a (b)"},
			Quota: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if r := db.Session(nil).Query(t.Context(), &abi.SQLStatement{SQL: "SELECT b FROM a"}); r.Error != nil ||
			r.Rows[0][0] != path {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if left, err := filepath.Glob(filepath.Join(restored, ".restore-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCreateFails(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	parent := t.TempDir()
	to := filepath.Join(parent, "backup")
	if _, err := backup.Create(t.Context(), data, parent); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a directory: %v", err)
	}
	if _, err := backup.Create(t.Context(), t.TempDir(), to); !errors.Is(err, backup.ErrNothing) {
		t.Errorf("of nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Create(ctx, data, to); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, "plugins", "notes", "bad.db"), []byte(strings.Repeat("damage", 1000)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(t.Context(), data, to); err == nil || !strings.Contains(err.Error(), "bad.db") {
		t.Errorf("of a damaged one: %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRestoreFails(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	for name, test := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"no backup": {func(dir string) error { return os.Remove(filepath.Join(dir, "backup.json")) }, "is not a complete backup"},
		"no file":   {func(dir string) error { return os.Remove(filepath.Join(dir, "hako.db")) }, "no such file"},
		"changed": {func(dir string) error { return os.Truncate(filepath.Join(dir, "plugins/notes/acme.db"), 4096) },
			"is not what was backed up"},
		"another list":  {rewrite(`"format": 2`, `"format": 3`), "is of format 3, and this hako reads up to 2"},
		"no list":       {rewrite(`"format"`, `"formats"`), "unknown key"},
		"path out":      {rewrite(`"hako.db"`, `"../hako.db"`), `"../hako.db" is not the path of a database`},
		"absolute path": {rewrite(`"hako.db"`, `"/etc/hako.db"`), `"/etc/hako.db" is not the path of a database`},
		"other file":    {rewrite(`"hako.db"`, `"secrets.key"`), `"secrets.key" is not the path of a database`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := create(t, data)
			if err := test.damage(from); err != nil {
				t.Fatal(err)
			}
			to := t.TempDir()
			if _, err := backup.Restore(t.Context(), from, to); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	if _, err := backup.Restore(t.Context(), create(t, data), data); !errors.Is(err, fs.ErrExist) ||
		!strings.Contains(err.Error(), "stop hako and move it away") {
		t.Errorf("over databases: %v", err)
	}
}

// rewrite replaces text in the list of a backup.
func rewrite(old, new string) func(string) error {
	return func(dir string) error {
		name := filepath.Join(dir, "backup.json")
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, []byte(strings.Replace(string(data), old, new, 1)), 0o600)
	}
}
