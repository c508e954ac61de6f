package store

import (
	"testing"
	"time"
)

// TestSlowLook: a slow reading does not replace a good one.
func TestSlowLook(t *testing.T) {
	t.Parallel()
	var c clock
	now := time.Now()
	for i, look := range []struct {
		took time.Duration
		want time.Duration // offset of the server's clock
	}{{8 * time.Second, -4 * time.Second}, {time.Millisecond, -time.Millisecond / 2},
		{8 * time.Second, -time.Millisecond / 2}} {
		c.read(now, now, look.took)
		r := c.set.Load()
		if got := r.server.Sub(r.local); got != look.want {
			t.Errorf("after look %d the server is %v ahead, want %v", i, got, look.want)
		}
	}
}
