package sandbox_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileNeighbour runs successive calls beside 60 looping ones and compares the steps of both sides, which does
// not depend on the load of the machine. Without fair shares, one side would get a sixtieth.
func TestHostileNeighbour(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loop       string
		samePlugin bool
	}{
		"another plugin loops":                {"loop", false},
		"another user of the plugin loops":    {"loop", true},
		"another plugin recurses":             {"recurse", false},
		"another user of the plugin recurses": {"recurse", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t), Processors: 2})
			if err != nil {
				t.Fatal(err)
			}
			limits := manifest.Limits{Rate: 1_000_000, Concurrency: 1024, Queue: 1024, CPU: 100_000_000}
			noisy := load(t, engine, "noisy", limits)
			quiet := noisy
			if !test.samePlugin {
				quiet = load(t, engine, "quiet", limits)
			}
			ctx, cancel := context.WithCancel(t.Context())
			const loops = 60
			var group sync.WaitGroup
			taken := make([]int64, loops)
			for i := range loops {
				group.Go(func() {
					_, _ = noisy.Call(ctx, &catalog.Invocation{User: "noisy", Steps: &taken[i],
						Request: &abi.Request{Method: abi.CallTool, Name: test.loop,
							Arguments: json.RawMessage(`{"n":60}`)}})
				})
			}
			if !testwait.Until(t, func() bool { return noisy.Stats().Running == loops }) {
				t.Fatal("not all calls run")
			}
			var own int64
			for range 20 {
				var steps int64
				if _, err := quiet.Call(t.Context(), &catalog.Invocation{User: "quiet", Steps: &steps,
					Request: &abi.Request{Method: abi.CallTool, Name: "recurse",
						Arguments: json.RawMessage(`{"n":26}`)}}); err != nil {
					t.Error(err)
				}
				own += steps
			}
			cancel()
			group.Wait()
			var others int64
			for _, n := range taken {
				others += n
			}
			if share := float64(own) / float64(own+others); share < 0.15 {
				t.Errorf("it got %.3f of all %d steps", share, own+others)
			} else {
				t.Logf("it got %.3f of all %d steps", share, own+others)
			}
		})
	}
}
