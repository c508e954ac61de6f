package bench

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// spinning is the number of calls of another plugin that spin beside the caller.
const spinning = 200

// neighbour compares the 95th percentile of one caller's small calls with and without spinning calls of another plugin.
func (r *results) neighbour(t *testing.T) {
	noisy := bytes.Replace([]byte(echoManifest), []byte("rate: 1000000"),
		[]byte("rate: 1000000, concurrency: 1024, queue: 1024"), 1)
	url := sandboxed(t, t.TempDir(), echoPlugin(t, "echo", "echo"), pluginOf(t, string(noisy), "noisy", "loop"))
	const arguments = `{"text":"hello"}`
	quiet := connect(t, url, protocolVersions[1])
	p95 := func() float64 {
		var took []time.Duration
		for begin := time.Now(); time.Since(begin) < *duration || len(took) < 20; {
			start := time.Now()
			if err := quiet.Call(t.Context(), "echo", quiet.Body("echo", arguments), "hello"); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return ms(took[len(took)*95/100])
	}
	p95() // warm-up
	alone := p95()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range spinning {
		spinner := connect(t, url, protocolVersions[1])
		group.Go(func() {
			for ctx.Err() == nil {
				_ = spinner.Call(ctx, "loop", spinner.Body("loop", arguments), "") // its limits end it repeatedly
			}
		})
	}
	time.Sleep(*duration / 4) // until all spin
	beside := p95()
	stop()
	group.Wait()
	r.add(t, "neighbour_alone_p95", alone, "ms")
	r.add(t, "neighbour_beside_p95", beside, "ms")
	r.add(t, "neighbour_p95_ratio", beside/alone, "beside 200 spinning calls/alone")
}

// TestNeighbour runs only this benchmark.
func TestNeighbour(t *testing.T) {
	if testing.Short() || !testing.Verbose() {
		t.Skip("it measures: run it with -v")
	}
	likeServe()
	var r results
	r.neighbour(t)
}
