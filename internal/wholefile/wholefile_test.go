package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hako-run/hako/internal/wholefile"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(path string, data []byte) error{
		"Write":        wholefile.Write,
		"WriteDurable": func(path string, data []byte) error { return wholefile.WriteDurable(path, data, 0o640) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			for _, want := range []string{"first, and longer", "second"} {
				if err := write(path, []byte(want)); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%q, %v; want %q", got, err, want)
				}
			}
			want := map[string]fs.FileMode{"Write": 0o600, "WriteDurable": 0o640}[name]
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
				t.Errorf("%v, %v; want %v", info.Mode(), err, want)
			}
			if err := write(filepath.Join(dir, "absent", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a directory that is not there: %v", err)
			}
			if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "taken", "x"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := write(filepath.Join(dir, "taken"), nil); err == nil {
				t.Error("a directory was replaced by a file")
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 2 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestRemoveLeftovers: only old temporary files are removed, and nothing that merely looks like one.
func TestRemoveLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-11 * time.Minute)
	for _, file := range []struct {
		name      string
		directory bool
		time      time.Time
		stays     bool
	}{
		{name: wholefile.Prefix + "1", time: old},
		{name: wholefile.Prefix + "2", time: time.Now(), stays: true},
		{name: wholefile.Prefix + "3", directory: true, time: old, stays: true},
		{name: "notes", time: old, stays: true},
		{name: ".new-4", time: old, stays: true},
		{name: wholefile.Prefix + "5 notes", time: old, stays: true},
		{name: wholefile.Prefix, time: old, stays: true},
	} {
		path := filepath.Join(dir, file.name)
		make := func() error { return os.WriteFile(path, nil, 0o600) }
		if file.directory {
			make = func() error { return os.Mkdir(path, 0o700) }
		}
		if err := errors.Join(make(), os.Chtimes(path, file.time, file.time)); err != nil {
			t.Fatal(err)
		}
		if err := wholefile.RemoveLeftovers(filepath.Join(dir, "absent"), dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); (err == nil) != file.stays {
			t.Errorf("%s: %v", file.name, err)
		}
	}
}
