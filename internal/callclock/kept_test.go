package callclock

import (
	"testing"
	"time"
)

// TestStoppedTimerKeepsNoClock: the runtime keeps a stopped timer for a while, up to its time. It must not lead to the
// clock, whose context holds much of a call.
func TestStoppedTimerKeepsNoClock(t *testing.T) {
	t.Parallel()
	_, clock, stop := Start(t.Context(), time.Hour)
	expiry := clock.expiry
	if expiry.clock.Load() != clock {
		t.Error("the timer does not lead to its clock")
	}
	stop()
	if expiry.clock.Load() != nil {
		t.Error("the stopped timer leads to its clock")
	}
	expiry.fire() // late
	if clock.Expired() {
		t.Error("a stopped clock has expired")
	}
}
