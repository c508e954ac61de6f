package trace_test

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/trace"
)

// TestRecordingKeepsCopies: steps and log lines of a call do not keep the texts of which theirs are parts.
func TestRecordingKeepsCopies(t *testing.T) {
	t.Parallel()
	var tracker memorytest.Tracker
	ctx, recording := trace.Record(t.Context(), "call_1")
	func() {
		large := func(what string) string { return tracker.Text(what, strings.Repeat("0123456789", 1<<17))[10:20] }
		_, span := trace.Start(ctx, large("a name"), trace.Internal)
		span.Text(trace.Tool, large("an attribute"))
		span.Fail(large("a failure"))
		span.End()
		trace.Log(ctx, slog.LevelInfo, large("a log line"))
	}()
	tracker.Check(t)
	if s := recording.Snapshot(); len(s.Steps) != 1 || s.Steps[0].Failure != "0123456789" || s.Lines[0].Text != "0123456789" {
		t.Errorf("%+v", s)
	}
	runtime.KeepAlive(ctx)
}
