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
		over := errors.New("over")
		began := time.Now()
		ctx, clock, stop := Start(t.Context(), 10*time.Second, over)
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
		if took := time.Since(began); took != 2*time.Hour+10*time.Second || !errors.Is(context.Cause(ctx), over) {
			t.Errorf("over after %v, because of %v", took, context.Cause(ctx))
		}
	})
}
