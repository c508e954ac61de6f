package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hako-run/hako/host"
)

// TestLeftovers: Watch removes old temporary files of killed processes, and never takes one for a plugin.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, func(o *host.Options) { o.RecordDir = dir })
	cache := filepath.Join(filepath.Dir(w.consents), "cache")
	before := time.Now().Add(-time.Hour)
	stays := map[string]bool{}
	for _, place := range []string{w.folder, filepath.Dir(w.consents), cache, filepath.Join(cache, "plugins"), dir} {
		if err := os.MkdirAll(place, 0o700); err != nil {
			t.Fatal(err)
		}
		old, young := filepath.Join(place, ".hako-new-1"), filepath.Join(place, ".hako-new-2")
		for _, path := range []string{old, young} {
			if err := os.WriteFile(path, []byte("half a fi"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(old, before, before); err != nil {
			t.Fatal(err)
		}
		stays[old], stays[young] = false, true
	}
	w.load()
	if list := w.Plugins(); len(list) != 0 {
		t.Errorf("plugins: %+v", list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it ends when it has removed what is left over
	if err := w.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	for path, want := range stays {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}
