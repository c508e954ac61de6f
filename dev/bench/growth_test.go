package bench

import (
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// TestGrowth measures how time and memory grow with the number or the size of things, one curve for each kind.
func TestGrowth(t *testing.T) {
	if *out == "" {
		t.Skip("make bench-growth runs this")
	}
	likeServe()
	var r results
	t.Run("plugins", func(t *testing.T) { r.growPlugins(t) })
	t.Run("tools", func(t *testing.T) { r.growTools(t) })
	t.Run("rules", func(t *testing.T) { r.growRules(t) })
	t.Run("callers", func(t *testing.T) { r.growCallers(t) })
	t.Run("sessions", func(t *testing.T) { r.growSessions(t) })
	t.Run("payload", func(t *testing.T) { r.growPayload(t) })
	if err := measurement.Write(*out, r); err != nil {
		t.Fatal(err)
	}
}

// perRun is the processor time of one of n runs of f, with all that it causes in this process. What else the machine does
// changes it little.
func perRun(t *testing.T, n int, f func() error) time.Duration {
	t.Helper()
	before := cpuTime(t)
	for range n {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	return (cpuTime(t) - before) / time.Duration(n)
}
