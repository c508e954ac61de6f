package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"github.com/hako-run/hako/host/audit"
)

// Another process that holds the log and stands still holds nobody up for ever, whether a call waits or not.
func TestLogThatIsHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	other := flock.New(filepath.Join(dir, "audit.lock"))
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a checkpoint: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, call("held")); !errors.Is(err, context.Canceled) {
		t.Errorf("a record: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
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
	other := flock.New(path)
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, call("held")); !errors.Is(err, context.Canceled) {
		t.Errorf("a record while another process holds the new lock: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("no new lock: %v", err)
	}
}
