package sandbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestCleanCallIsWarm checks that a restored Go guest needs about as few steps as a reused one: its image has a grown
// heap and allocated buffers.
func TestCleanCallIsWarm(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("hello ", 4000)
	for _, test := range []struct{ name, tool, text string }{{"small", "echo", "hello"},
		{"24 KB", "structured", large}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			arguments, err := json.Marshal(object{"text": test.text})
			if err != nil {
				t.Fatal(err)
			}
			typical := func(state manifest.State) int64 {
				plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: state})
				var taken []int64
				for range 21 {
					var steps int64
					request := &abi.Request{Method: abi.CallTool, Name: test.tool, Arguments: arguments}
					if _, err := plugin.Call(t.Context(),
						&catalog.Invocation{Request: request, Steps: &steps}); err != nil {
						t.Fatal(err)
					}
					taken = append(taken, steps)
				}
				slices.Sort(taken)
				return taken[len(taken)/2]
			}
			clean, reused := typical(manifest.StateCall), typical(manifest.StateShared)
			const more = 300 // for the first objects of each size
			if clean > reused+reused/100+more {
				t.Errorf("%d steps on a clean instance, %d on a reused one", clean, reused)
			}
		})
	}
}
