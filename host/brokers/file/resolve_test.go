package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/grant"
)

// TestEnterSeesAnExchange exchanges a directory between Lstat and open, a moment too short to hit by chance.
func TestEnterSeesAnExchange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"d", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m, err := New(grant.Mount{Name: "w", Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, exchange := range map[string]func(name string) error{
		"a link to another directory": func(name string) error { return os.Symlink("other", name) },
		"another directory":           func(name string) error { return os.Mkdir(name, 0o755) },
		"nothing":                     func(string) error { return nil },
		"a file":                      func(name string) error { return os.WriteFile(name, nil, 0o644) },
		"a link to the outside":       func(name string) error { return os.Symlink("..", name) },
	} {
		p, err := m.resolve(NewHandles(0), []string{"d"}, true)
		if err != nil {
			t.Fatal(err)
		}
		old, d := filepath.Join(dir, "old"), filepath.Join(dir, "d")
		if err := errors.Join(os.Rename(d, old), exchange(d)); err != nil {
			t.Fatal(err)
		}
		if err := p.enter(); !errors.Is(err, errChanged) {
			t.Errorf("exchanged for %s: %v", name, err)
		}
		p.close()
		if err := errors.Join(os.RemoveAll(d), os.Rename(old, d)); err != nil {
			t.Fatal(err)
		}
	}
}
