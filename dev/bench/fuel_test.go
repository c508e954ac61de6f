package bench

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// quantum is the quantum of the sandbox.
const quantum = 1 << 12

// arithmetic is a module with two functions: "loop" sums the numbers below n in a tight loop, and "fib" is the
// recursive function without a loop.
const arithmetic = "\x00asm\x01\x00\x00\x00" +
	"\x01\x06\x01\x60\x01\x7f\x01\x7f" + "\x03\x03\x02\x00\x00" + "\x07\x0e\x02\x04loop\x00\x00\x03fib\x00\x01" +
	"\x0a\x38\x02" +
	"\x19\x01\x01\x7f\x03\x40\x20\x01\x20\x00\x6a\x21\x01\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x20\x01\x0b" +
	"\x1c\x00\x20\x00\x41\x02\x48\x04\x7f\x20\x00\x05\x20\x00\x41\x01\x6b\x10\x01\x20\x00\x41\x02\x6b\x10\x01\x6a\x0b\x0b"

// fuel compares the same code with and without fuel: the best of several runs of each, in turn.
func (r *results) fuel(t *testing.T) {
	for _, test := range []struct {
		key, function string
		n             uint64
	}{{"fuel_loop_ratio", "loop", 300_000_000}, {"fuel_recursion_ratio", "fib", 36}} {
		plain, metered := instantiate(t, []byte(arithmetic)), instantiate(t, rewritten(t, []byte(arithmetic)))
		run := func(module api.Module) func() time.Duration {
			return func() time.Duration {
				start := time.Now()
				if _, err := module.ExportedFunction(test.function).Call(t.Context(), test.n); err != nil {
					t.Fatal(err)
				}
				return time.Since(start)
			}
		}
		r.add(t, test.key, ratio(run(metered), run(plain)), "with/without fuel")
	}
	wasm := command(t, "dev/kit/guesttest/guests/decode")
	r.add(t, "fuel_gojson_ratio", ratio(decoding(t, rewritten(t, wasm)), decoding(t, wasm)), "with/without fuel")
}

func ratio(a, b func() time.Duration) float64 {
	best := func(old, now time.Duration) time.Duration {
		if old == 0 {
			return now
		}
		return min(old, now)
	}
	var bestA, bestB time.Duration
	for range 9 {
		bestA, bestB = best(bestA, a()), best(bestB, b())
	}
	return float64(bestA) / float64(bestB)
}

func rewritten(t *testing.T, wasm []byte) []byte {
	t.Helper()
	result, err := rewrite.Module(wasm, quantum, rewrite.MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	return result.Wasm
}

// newRuntime links what a rewritten module imports beside WASI.
func newRuntime(t *testing.T) wazero.Runtime {
	t.Helper()
	ctx := experimental.WithCompilationWorkers(t.Context(), 2)
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
	t.Cleanup(func() { _ = runtime.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	_, err := runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, module api.Module, _ []uint64) {
			module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal).Set(quantum)
		}), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return runtime
}

func instantiate(t *testing.T, wasm []byte) api.Module {
	t.Helper()
	module, err := newRuntime(t).Instantiate(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// decoding runs the command decode, which measures its own time.
func decoding(t *testing.T, wasm []byte) func() time.Duration {
	t.Helper()
	runtime := newRuntime(t)
	compiled, err := runtime.CompileModule(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return func() time.Duration {
		var out bytes.Buffer
		config := wazero.NewModuleConfig().WithName("").WithStdout(&out).WithStderr(os.Stderr).
			WithSysNanotime().WithSysWalltime()
		if _, err := runtime.InstantiateModule(t.Context(), compiled, config); err != nil && out.Len() == 0 {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ns)
	}
}

// command builds a WASI command with the Go compiler.
func command(t *testing.T, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "command.wasm")
	build := exec.Command("go", "build", "-trimpath", "-o", out, "./"+dir)
	build.Dir = guesttest.Root()
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
