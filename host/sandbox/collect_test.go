package sandbox_test

import (
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// TestGoGuestCollectsLate counts the garbage collections of calls: none in most calls of a guest that starts clean,
// unless its author wants them, and as always in one that keeps its state.
func TestGoGuestCollectsLate(t *testing.T) {
	t.Parallel()
	clean := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	shared := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: manifest.StateShared})
	for _, test := range []struct {
		name      string
		plugin    *sandbox.Plugin
		arguments object
		collects  bool
	}{
		{"10 MiB", clean, object{"garbage": 10}, false},
		{"10 MiB with the author's setting", clean, object{"garbage": 10, "percent": 100}, true},
		{"10 MiB after that", clean, object{"garbage": 10}, false},
		{"10 MiB with shared state", shared, object{"garbage": 10}, true},
	} {
		if got := text(t, test.plugin, "waste_memory", test.arguments); (got != "0") != test.collects {
			t.Errorf("%s: %s collections", test.name, got)
		}
	}
}

// TestGoGuestLivesWithinLimit lets a Go guest make garbage of several times its memory limit, in loops that never wait,
// while up to half of the limit is alive.
func TestGoGuestLivesWithinLimit(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]manifest.State{"clean": manifest.StateCall, "shared": manifest.StateShared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{State: state,
				Limits: manifest.Limits{Memory: 32 << 20, CPU: 1 << 50}})
			for _, live := range []int{0, 8, 16} {
				got := text(t, plugin, "waste_memory", object{"live": live, "garbage": 96})
				if got == "0" {
					t.Errorf("%d MiB alive: the guest has not collected its garbage", live)
				}
			}
		})
	}
}
