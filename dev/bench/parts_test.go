package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	sandboxcompile "github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// parts measures the steps before a call: rewriting, compiling, and the image of a plugin's start.
func (r *results) parts(t *testing.T) {
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/probe")
	var result *rewrite.Result
	r.add(t, "part_rewrite_ms", ms(least(t, 5, func() (err error) {
		result, err = rewrite.Module(wasm, quantum, rewrite.MaxElements)
		return err
	})), "ms")
	dir := t.TempDir()
	for _, key := range []string{"part_compile_cold_ms", "part_compile_warm_ms"} {
		r.add(t, key, ms(least(t, 1, func() error { return compile(t, dir, result.Wasm) })), "ms")
	}
	r.images(t)
}

// compile compiles a module with the cache in dir.
func compile(t *testing.T, dir string, wasm []byte) error {
	cache, err := sandboxcompile.NewCache(dir)
	if err != nil {
		return err
	}
	ctx := experimental.WithCompilationWorkers(t.Context(), 2)
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	_, err = runtime.CompileModule(ctx, wasm)
	return errors.Join(err, runtime.Close(ctx), cache.Close(context.Background()))
}

// images measures the first call of a compiled plugin, which creates the image of its start, and the first call in the
// next process, which loads it.
func (r *results) images(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct{ key, remove string }{
		{"", ""}, // fills the cache
		{"part_image_make_ms", "images/*.image"},
		{"part_image_load_ms", ""},
	} {
		if step.remove != "" {
			names, err := filepath.Glob(filepath.Join(dir, step.remove))
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			for _, name := range names {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		took := firstCall(t, dir)
		if step.key != "" {
			r.add(t, step.key, ms(took), "ms")
		}
	}
}

// firstCall returns the duration of the first call of a plugin whose compiled code is in dir, without compiling.
func firstCall(t *testing.T, dir string) time.Duration {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(probeSpec(t, manifest.StateCall))
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := least(t, 1, func() error {
		_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: tool("echo", `{"text":"hello"}`)})
		return err
	})
	if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
		t.Fatal(err)
	}
	return took
}

// least returns the shortest time of several runs of f.
func least(t *testing.T, runs int, f func() error) time.Duration {
	t.Helper()
	best := time.Duration(1<<63 - 1)
	for range runs {
		start := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best
}
