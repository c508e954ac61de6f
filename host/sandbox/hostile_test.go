package sandbox_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileCode stops guests that do much work between function entries and loop heads. Counted only there, most of
// them ran for seconds after their deadline; make bench measures the overshoot.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	for name, wasm := range guesttest.Hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{
				Wasm:   func() ([]byte, error) { return wasm, nil },
				Limits: manifest.Limits{Memory: 40 << 20, CPU: 1 << 20},
			})
			const limit = 300 * time.Millisecond
			best := time.Duration(math.MaxInt64)
			for range 10 { // a busy machine is late sometimes, uncounted work always
				start := time.Now()
				_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool},
					Limits: manifest.Limits{Time: limit}})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if best = min(best, time.Since(start)); best <= 10*limit {
					return
				}
			}
			t.Errorf("stopped after %v, want %v", best, limit)
		})
	}
}
