package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/hako-run/hako/host/govern/audit"
)

// Another process that holds the log and stands still holds nobody up for ever, whether a call waits or not.
func TestLogThatIsHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	release := hold(t, filepath.Join(dir, "audit.lock"))
	if err := l.Checkpoint(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a checkpoint: %v", err)
	}
	waits(t, l)
	release()
	appendCalls(t, l, 1)
}

// Nobody waits without end for a process that stands still when a log is opened.
func TestOpenWhileHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release := hold(t, filepath.Join(dir, "audit.lock"))
	defer release()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		l, err := audit.Open(&audit.Options{Dir: dir})
		if err == nil {
			t.Fatal(l.Close())
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process holds") {
			t.Error(err)
		}
		if waited := time.Since(begun); waited < 10*time.Second || waited > time.Minute {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// hold locks a file as another process does, until release is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	other := flock.New(path)
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// waits fails unless a record waits for the lock until its call is canceled, and the error names the lock.
func waits(t *testing.T, l *audit.Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := l.Append(ctx, call("held"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "audit.lock") {
		t.Errorf("a record while another process holds the lock: %v", err)
	}
}

// After somebody has removed the file of the lock, all processes lock the new one.
func TestLockThatWasRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	path := filepath.Join(dir, "audit.lock")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	waits(t, l)
	release()
	appendCalls(t, l, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("no new lock: %v", err)
	}
}
