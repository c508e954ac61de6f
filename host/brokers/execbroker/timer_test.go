package execbroker

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTimer: the timer is stopped while a person is asked, also if questions overlap.
func TestTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		up := make(chan time.Duration, 10)
		timer := newTimer(3000, func() { up <- time.Since(start) })
		time.Sleep(time.Second)
		first := timer.pause()
		time.Sleep(time.Minute)
		second := timer.pause()
		first()
		time.Sleep(time.Minute)
		second()
		if got, want := <-up, 2*time.Minute+3*time.Second; got != want {
			t.Errorf("up after %v, want %v", got, want)
		}

		timer.pause()() // after its timeout
		timer.stop()

		newTimer(0, func() { up <- 0 }).pause()()
		stopped := newTimer(1000, func() { up <- 0 })
		stopped.stop()
		time.Sleep(time.Hour)
		for len(up) > 0 {
			if <-up == 0 {
				t.Error("a timer without time, or one that was stopped, is up")
			}
		}
	})
}
