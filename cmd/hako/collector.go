package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// collectMost trades memory for speed while little is alive: most of what the server allocates are short-lived
	// buffers.
	collectMost = 400
	// collectLeast is what Go does by itself; less costs too much time.
	collectLeast = 100
	// collectRoom is how much garbage may gather where that is less than collectMost allows: with several plugins at
	// work some hundred MiB are alive, and four times that is not worth it.
	collectRoom = 256 << 20
	// collectLook is how often what is alive is looked at.
	collectLook = 5 * time.Second
)

// tendCollector keeps the garbage collector's GOGC at what fits the heap until ctx ends, unless the environment has a
// say. When a load has ended, it gives the memory back that the load needed: Go would keep most of it for the next.
func tendCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	inForce := collectMost
	debug.SetGCPercent(inForce)
	var load load
	tick := time.NewTicker(collectLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if percent := collectPercent(heapBytes("/gc/heap/live:bytes")); percent != inForce {
				inForce = percent
				debug.SetGCPercent(percent)
			}
			if load.ended(heapBytes("/gc/heap/allocs:bytes")) {
				runtime.GC() // pools of buffers survive one collection
				debug.FreeOSMemory()
			}
		}
	}
}

// heapBytes reads one of the runtime's metrics in bytes.
func heapBytes(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

const (
	// loadBytes are allocated between two looks under load, and at most restBytes at rest.
	loadBytes, restBytes = 64 << 20, 8 << 20
	// restLooks is for how many looks a load must have ended: half a minute.
	restLooks = 6
)

// load tells when a load has ended, by what is allocated between looks.
type load struct {
	allocated uint64
	loaded    bool
	rests     int
}

// ended is called at each look with what has been allocated so far. It reports true once after each load.
func (l *load) ended(allocated uint64) bool {
	more := allocated - l.allocated
	l.allocated = allocated
	l.rests++
	if more > restBytes {
		l.loaded, l.rests = l.loaded || more >= loadBytes, 0
	}
	if !l.loaded || l.rests < restLooks {
		return false
	}
	*l = load{allocated: allocated}
	return true
}

// collectPercent is the GOGC for a heap, in steps, so that it rarely changes.
func collectPercent(live uint64) int {
	const step = 25
	percent := int(min(collectRoom*100/max(live, 1), collectMost))
	return max(percent/step*step, collectLeast)
}
