package audit_test

import (
	"context"
	"errors"
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
