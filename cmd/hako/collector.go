package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectMost trades memory for speed while little is alive: most of what the server allocates are short-lived buffers.
	collectMost = 400
	// collectLeast is what Go does by itself; less costs too much time.
	collectLeast = 100
	// collectRoom is how much garbage may gather where that is less than collectMost allows: with several plugins at work some hundred
	// MiB are alive, and four times that is not worth it.
	collectRoom = 512 << 20
	// collectLook is how often what is alive is looked at.
	collectLook = 5 * time.Second
)

// tendCollector keeps the garbage collector's GOGC at what fits the heap until ctx ends, unless the environment has a say.
func tendCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	inForce := collectMost
	debug.SetGCPercent(inForce)
	tick := time.NewTicker(collectLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if percent := collectPercent(liveHeap()); percent != inForce {
				inForce = percent
				debug.SetGCPercent(percent)
			}
		}
	}
}

// liveHeap is what the last collection left, in bytes.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return live[0].Value.Uint64()
}

// collectPercent is the GOGC for a heap, in steps, so that it rarely changes.
func collectPercent(live uint64) int {
	const step = 25
	percent := int(min(collectRoom*100/max(live, 1), collectMost))
	return max(percent/step*step, collectLeast)
}
