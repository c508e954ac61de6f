package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	componenttool "github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
)

// component measures a component of componentize-qjs, which HAKO_COMPONENTS has (host/wasm/component/testdata): the first
// answer with nothing cached, and what a clean call costs more than one on a reused instance.
func (r *results) component(t *testing.T) {
	wasm, err := os.ReadFile(filepath.Join(os.Getenv("HAKO_COMPONENTS"), "echo-qjs.wasm"))
	if err != nil {
		t.Log(err)
		return
	}
	request := tool("echo", `{"text":"hello"}`)
	call := func(plugin *sandbox.Plugin) {
		if _, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request}); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	clean := loadComponent(t, wasm, manifest.StateCall)
	call(clean)
	r.add(t, "component_first_call_ms", ms(time.Since(start)), "ms")
	reused := loadComponent(t, wasm, manifest.StateShared)
	for _, plugin := range []*sandbox.Plugin{clean, reused} {
		if err := plugin.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		call(plugin)
	}
	cleanCall, reusedCall := measure(t, clean, request), measure(t, reused, request)
	r.add(t, "component_js_call_ms", ms(cleanCall.latency), "ms")
	r.add(t, "component_js_call_reused_ms", ms(reusedCall.latency), "ms")
}

// loadComponent loads a component without manifest, with a cache of its own.
func loadComponent(t *testing.T, wasm []byte, state manifest.State) *sandbox.Plugin {
	t.Helper()
	c, err := component.Decode(wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.ParseComponent([]byte("name: x\nversion: 1.0.0\n"))
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := componenttool.New(c, m)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Name: "x", Wasm: func() ([]byte, error) { return wasm, nil }, State: state,
		Limits: manifest.Limits{Rate: 1 << 40}, Interfaces: wasi.New(&wasi.Options{
			RandomDrawn: func(ctx context.Context) { sandbox.GuestOf(ctx).MarkRandomDrawn() }})}
	adapter.Equip(&spec)
	plugin := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return plugin
}
