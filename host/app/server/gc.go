package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercentMost trades memory for speed while little is alive: most allocations of the server are short-lived
	// buffers.
	gcPercentMost = 400
	// gcPercentLeast is the default of Go. Less costs too much time.
	gcPercentLeast = 100
	// gcGarbage is the most garbage in bytes: under load 40 to 100 MiB are alive, and four times that would be too
	// much. With twice as much, calls need no less processor time, within what can be measured.
	gcGarbage = 64 << 20
	// loadCheck is the interval of checks whether a load has ended.
	loadCheck = 5 * time.Second
)

// gcTuner is the part that sets GOGC after each garbage collection to what fits the heap, unless the environment sets
// it. When a load has ended, it returns memory to the system that Go would keep for the next load.
type gcTuner struct{}

func (gcTuner) start(context.Context) error { return nil }

func (gcTuner) run(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	current := gcPercentMost
	debug.SetGCPercent(current)
	var load load
	tick := time.NewTicker(loadCheck)
	defer tick.Stop()
	collected := make(chan struct{}, 1)
	notifyCollected(ctx, collected)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-collected:
			if percent := gcPercent(heapBytes("/gc/heap/live:bytes")); percent != current {
				current = percent
				debug.SetGCPercent(percent)
			}
		case <-tick.C:
			if load.ended(heapBytes("/gc/heap/allocs:bytes")) {
				runtime.GC() // pools of buffers survive one collection
				debug.FreeOSMemory()
			}
		}
	}
}

// notifyCollected notifies collected after each garbage collection until ctx ends, unless a notification is pending.
func notifyCollected(ctx context.Context, collected chan<- struct{}) {
	// It has a pointer because small objects without any share a block, which outlives each of them.
	type unreachable struct{ _ *int }
	runtime.AddCleanup(new(unreachable), func(ctx context.Context) {
		if ctx.Err() == nil {
			notifyCollected(ctx, collected)
		}
		select {
		case collected <- struct{}{}:
		default:
		}
	}, ctx)
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
	// loadBytes is the least that is allocated between two checks under load, restBytes the most at rest.
	loadBytes, restBytes = 64 << 20, 8 << 20
	// restChecks is for how many checks a load must have ended: half a minute.
	restChecks = 6
)

// load detects the end of a load from the allocations between checks.
type load struct {
	allocated uint64
	loaded    bool
	rests     int
}

// ended is called at each check with the bytes allocated so far. It reports true once after each load.
func (l *load) ended(allocated uint64) bool {
	more := allocated - l.allocated
	l.allocated = allocated
	l.rests++
	if more > restBytes {
		l.loaded, l.rests = l.loaded || more >= loadBytes, 0
	}
	if !l.loaded || l.rests < restChecks {
		return false
	}
	*l = load{allocated: allocated}
	return true
}

// gcPercent is the GOGC for a heap with so many live bytes, in steps so that it rarely changes.
func gcPercent(live uint64) int {
	const step = 25
	percent := int(min(gcGarbage*100/max(live, 1), gcPercentMost))
	return max(percent/step*step, gcPercentLeast)
}
