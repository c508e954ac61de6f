package testwait_test

import (
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// short is a test whose binary ends soon.
type short struct {
	testing.TB
	deadline time.Time
}

func (s short) Deadline() (time.Time, bool) { return s.deadline, true }

func TestContext(t *testing.T) {
	t.Parallel()
	ctx := testwait.Context(short{t, time.Now().Add(100 * time.Millisecond)})
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > 100*time.Millisecond {
		t.Errorf("the wait ends at %v, %v", end, ok)
	}
	if <-ctx.Done(); ctx.Err() == nil {
		t.Error("it ends without an error")
	}
	end, _ := testwait.Context(short{t, time.Now().Add(time.Hour)}).Deadline()
	if left := time.Until(end); left > time.Hour-time.Minute {
		t.Errorf("the wait ends in %v, too late to report it", left)
	}
	var inCleanup error
	t.Run("cleanup", func(t *testing.T) {
		t.Cleanup(func() { inCleanup = testwait.Context(t).Err() })
	})
	if inCleanup != nil {
		t.Errorf("no cleanup can wait: %v", inCleanup)
	}
	type unlimited struct{ testing.TB }
	if _, ok := testwait.Context(unlimited{t}).Deadline(); ok {
		t.Error("without a deadline of the test the wait has one")
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	looks := 0
	if !testwait.Until(t, func() bool { looks++; return looks == 3 }) || looks != 3 {
		t.Errorf("it ends after %d looks", looks)
	}
	if testwait.Until(short{t, time.Now().Add(50 * time.Millisecond)}, func() bool { return false }) {
		t.Error("what never holds holds")
	}
}
