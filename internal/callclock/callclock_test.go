package callclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: a server's time stands still while a person thinks, however many questions overlap, and goes on where it
// was.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, clock, stop := Start(t.Context(), 10*time.Second)
		defer stop()
		time.Sleep(4 * time.Second)
		first := clock.Pause()
		second := clock.Pause()
		time.Sleep(time.Hour)
		first()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Error("the time went on while a person was asked")
		}
		second()
		<-ctx.Done()
		if took := time.Since(began); took != 2*time.Hour+10*time.Second || !clock.Expired() ||
			!errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx),
			context.DeadlineExceeded) {
			t.Errorf("over after %v: %v, because of %v", took, ctx.Err(), context.Cause(ctx))
		}
	})
}

// TestNested: Pause stops the clocks around a call too, and derived contexts see deadline and end.
func TestNested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		outer, _, stopOuter := Start(t.Context(), 10*time.Second)
		defer stopOuter()
		inner, clock, stopInner := Start(context.WithValue(outer, testKey{}, "value"), 20*time.Second)
		defer stopInner()
		derived, cancel := context.WithCancel(inner)
		defer cancel()
		if deadline, ok := derived.Deadline(); !ok || !deadline.Equal(began.Add(10*time.Second)) {
			t.Errorf("the deadline is %v, %v", deadline, ok)
		}
		resume := Pause(derived)
		if deadline, ok := derived.Deadline(); ok {
			t.Errorf("while a person is asked, the deadline is %v", deadline)
		}
		time.Sleep(time.Hour)
		resume()
		resume() // does nothing
		<-derived.Done()
		if took := time.Since(began); took != time.Hour+10*time.Second || clock.Expired() ||
			!errors.Is(inner.Err(), context.DeadlineExceeded) || !errors.Is(derived.Err(), context.DeadlineExceeded) {
			t.Errorf("over after %v: %v", took, derived.Err())
		}
		Pause(t.Context())() // without a clock
	})
}

// TestParent: the end of the parent, and stop, end the context at once.
func TestParent(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, clock, stop := Start(parent, time.Hour)
	defer stop()
	gone := errors.New("gone")
	cancel(gone)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), gone) || clock.Expired() {
		t.Errorf("ended because of %v", context.Cause(ctx))
	}
	ctx, _, stop = Start(t.Context(), time.Hour)
	stop()
	if ctx.Err() == nil {
		t.Error("a released context has not ended")
	}
}

type testKey struct{}

// TestStartPaused: no time passes before the clock is resumed, however short the limit.
func TestStartPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, resume, stop := StartPaused(t.Context(), time.Nanosecond)
		defer stop()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("the time was up before the clock ran")
		}
		resume()
		<-ctx.Done()
		if took := time.Since(began); took != time.Hour+time.Nanosecond {
			t.Errorf("over after %v", took)
		}
	})
}

// TestStopPaused: a pause that outlives the call does not start the clock again.
func TestStopPaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, clock, stop := Start(t.Context(), time.Second)
		resume := clock.Pause()
		stop()
		resume()
		time.Sleep(time.Hour)
		if clock.Expired() || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("expired: %v, ended with %v", clock.Expired(), ctx.Err())
		}
	})
}
