package host_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/hako-run/hako/host/manifest"
)

// TestConsentEvaluatesItsPlugin: a new consent evaluates the plugin of that name and no other.
func TestConsentEvaluatesItsPlugin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name+".wasm", tinyPlugin(t, name, "d"))
	}
	w.load()
	before := map[string]*manifest.Manifest{} // of a plugin that waits, each evaluation has another one
	for _, status := range w.Plugins() {
		before[status.Name] = status.Manifest
	}
	w.approve("b.wasm", nil)
	w.load()
	if got := w.tools(); got != "t_b" {
		t.Errorf("the tools are %q", got)
	}
	for _, status := range w.Plugins() {
		if evaluated := status.Manifest != before[status.Name]; evaluated != (status.Name == "b") {
			t.Errorf("%s: evaluated is %t", status.Name, evaluated)
		}
	}
}

// TestStartGrowsLinearly: with more plugins, each costs as much memory at the start as with few. It is not parallel,
// because it counts what the whole process allocates.
func TestStartGrowsLinearly(t *testing.T) {
	perPlugin := func(n int) float64 {
		w := newWorld(t, nil)
		w.IndexAtOnce()
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			w.put(name+".wasm", tinyPlugin(t, name, "d"))
			w.approve(name+".wasm", nil)
		}
		w.load()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		again := w.again(t)
		runtime.ReadMemStats(&after)
		if got := len(again.Catalog().View().Tools); got != n {
			t.Fatalf("%d of %d plugins are in service", got, n)
		}
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
	}
	few, many := perPlugin(10), perPlugin(80)
	t.Logf("%.0f bytes for each of 10 plugins, %.0f for each of 80", few, many)
	if many > 1.3*few {
		t.Errorf("%.0f bytes for each of 10 plugins, %.0f for each of 80", few, many)
	}
}

// TestManyNewPluginsNotifyRarely: what follows the catalog is not brought up to date for each of many new plugins.
func TestManyNewPluginsNotifyRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const plugins = 60
	for i := range plugins {
		name := fmt.Sprintf("p%d", i)
		w.put(name+".wasm", tinyPlugin(t, name, "d"))
		w.approve(name+".wasm", nil)
	}
	notified := 0
	defer w.Catalog().Watch(func() { notified++ })()
	w.load()
	if got := len(w.Catalog().View().Tools); got != plugins || notified > 15 {
		t.Errorf("%d tools, %d notifications", got, notified)
	}
}
