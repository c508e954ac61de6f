package server

import (
	"context"
	"runtime"
	"testing"
)

// TestNotifyCollected: each garbage collection is notified, so that GOGC falls as soon as much is alive.
func TestNotifyCollected(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	collected := make(chan struct{}, 1)
	notifyCollected(ctx, collected)
	for range 3 {
		runtime.GC()
		<-collected
	}
	cancel()
}

func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 400, 16 * mib: 400, 32 * mib: 200, 50 * mib: 125, 250 * mib: 100, 4096 * mib: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("with %d MiB alive GOGC is %d, want %d", live/mib, got, want)
		}
	}
}

func TestLoadEnded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	rest := []uint64{0, 1, 8, 0, 0, 2}
	for name, test := range map[string]struct {
		mib  []uint64 // allocated between looks
		want int
	}{
		"nothing":                        {make([]uint64, 50), 0},
		"a little, and more":             {[]uint64{1, 20, 63, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
		"a load that goes on":            {[]uint64{64, 200, 9, 1, 1, 1, 1, 1, 64, 0, 0, 0, 0, 0}, 0},
		"a load, then rest":              {append([]uint64{300, 64}, rest...), 1},
		"a load, then rest for long":     {append(append([]uint64{300}, rest...), make([]uint64, 50)...), 1},
		"two loads, and rest after both": {append(append(append([]uint64{70}, rest...), 1000), rest...), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l load
			var allocated uint64
			got := 0
			for _, n := range test.mib {
				if allocated += n * mib; l.ended(allocated) {
					got++
				}
			}
			if got != test.want {
				t.Errorf("memory is given back %d times, want %d", got, test.want)
			}
		})
	}
}
