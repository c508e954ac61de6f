package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func shared(t *testing.T, dir string) *usage {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	u, err := acquireUsage(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.release()
		root.Close()
	})
	return u
}

func TestWaitingForTheMeasurementEndsWithTheCall(t *testing.T) {
	t.Parallel()
	u := shared(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v before the measurement", err)
	}
	u.startFirstWalk()
	if err := u.wait(t.Context()); err != nil {
		t.Errorf("error %v after it", err)
	}
}

// TestMovesDuringAWalk: during a walk a file or directory moves from an unvisited to a visited directory.
func TestMovesDuringAWalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "d"), 0o755),
		os.WriteFile(filepath.Join(dir, "f"), make([]byte, 100), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for moved, want := range map[string]int64{"": 100, "f": 200, "d": 0} {
		u := shared(t, dir)
		u.startFirstWalk()
		if err := u.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		u.mu.Lock()
		u.named = 0 // wrong until the next measurement
		u.walkLocked()
		if moved != "" {
			info, err := os.Stat(filepath.Join(dir, moved))
			if err != nil {
				t.Fatal(err)
			}
			u.movedLocked(info)
		}
		u.mu.Unlock()
		u.walker.Wait()
		if u.named != want {
			t.Errorf("after moving %q: %d bytes, want %d", moved, u.named, want)
		}
	}
}
