package main

import "testing"

func TestCollectPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for live, want := range map[uint64]int{0: 400, 30 * mib: 400, 128 * mib: 400, 200 * mib: 250, 440 * mib: 100, 4096 * mib: 100} {
		if got := collectPercent(live); got != want {
			t.Errorf("with %d MiB alive GOGC is %d, want %d", live/mib, got, want)
		}
	}
}
