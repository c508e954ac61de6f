package sandbox_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// TestNoTraceRemains makes a guest leave traces everywhere it can and checks that later calls find none, whether the
// instance could be restored or not.
func TestNoTraceRemains(t *testing.T) {
	t.Parallel()
	mount, err := file.New(grant.Mount{Name: "workspace", Path: t.TempDir(), Write: true})
	if err != nil {
		t.Fatal(err)
	}
	defer mount.Close()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{
		Mounts: []*file.Mount{mount}, Limits: manifest.Limits{Memory: 128 << 20, Concurrency: 1},
	})
	const secret = "a secret of the caller before"
	hidden := []byte(secret)
	for i := range hidden {
		hidden[i] ^= 1
	}
	for _, trace := range []struct {
		tool      string
		arguments object
	}{
		{"leave", object{"text": secret}},
		{"echo", object{"text": secret}},
		{"close_descriptors", object{}},
		{"read_directory", object{}},
		{"eat_memory", object{"n": 40}},
		{"panic", object{}},
		{"exit", object{"n": 1}},
		{"trap", object{}},
	} {
		for range 3 {
			_, _ = call(t, plugin, trace.tool, trace.arguments) // some of them fail on purpose
			if found := text(t, plugin, "search", object{"text": string(hidden)}); found != "" {
				t.Errorf("after %s the next call sees: %s", trace.tool, found)
			}
		}
	}
}

// TestSearchFindsTraces checks that the search of TestNoTraceRemains finds traces of the same call.
func TestSearchFindsTraces(t *testing.T) {
	t.Parallel()
	mount, err := file.New(grant.Mount{Name: "workspace", Path: t.TempDir(), Write: true})
	if err != nil {
		t.Fatal(err)
	}
	defer mount.Close()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{Mounts: []*file.Mount{mount},
		Limits: manifest.Limits{Memory: 128 << 20}})
	found := text(t, plugin, "leave_and_search", object{"text": "something to find"})
	for _, place := range []string{"map", "slice", "global", "environment", "descriptor", "grown memory", "memory at"} {
		if !strings.Contains(found, place) {
			t.Errorf("the search misses the trace in %s: %s", place, found)
		}
	}
}
