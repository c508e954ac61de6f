package process_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/internal/process"
)

func TestOnStuck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ends  time.Duration
		stuck bool
	}{"ends in time": {2 * time.Second, false}, "is stuck": {4 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				limit := time.Duration(0)
				cancel := process.OnStuck(ctx, func() time.Duration { return 3 * time.Second },
					func(d time.Duration) { limit = d })
				time.Sleep(time.Hour) // nothing is asked to end yet
				stop()
				time.Sleep(test.ends)
				cancel()
				cancel()
				synctest.Wait()
				if (limit == 3*time.Second) != test.stuck {
					t.Errorf("do was called with %v", limit)
				}
			})
		})
	}
}
