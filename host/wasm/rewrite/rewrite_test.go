package rewrite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall

// command builds a WASI command with the Go compiler.
func command(t testing.TB, dir string) []byte {
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

// run runs a command and returns its output, how it ended, and how often it requested fuel.
func run(t *testing.T, wasm []byte, quantum int64) (output, end string, refills int) {
	t.Helper()
	ctx := experimental.WithCompilationWorkers(t.Context(), 2)
	config := wazero.NewRuntimeConfig().WithCoreFeatures(features)
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	_, err := runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, module api.Module, _ []uint64) {
			refills++
			module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal).Set(uint64(quantum))
		}), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	_, err = runtime.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStdout(&buffer).WithStderr(&buffer))
	var exitError *sys.ExitError
	if errors.As(err, &exitError) {
		return buffer.String(), fmt.Sprint("exit ", exitError.ExitCode()), refills
	}
	if err != nil {
		end = trap(err)
	}
	return buffer.String(), end, refills
}

// TestSameMeaning runs an original and a rewritten program of the Go compiler and compares their output, including a
// panic.
func TestSameMeaning(t *testing.T) {
	t.Parallel()
	original := command(t, "dev/kit/guesttest/guests/compute")
	const quantum = 1000
	rewritten, err := rewrite.Module(original, quantum, rewrite.MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	want, wantEnd, _ := run(t, original, quantum)
	got, end, refills := run(t, rewritten.Wasm, quantum)
	if got != want || end != wantEnd {
		t.Errorf("rewritten: %s\n%s\noriginal: %s\n%s", end, got, wantEnd, want)
	}
	if wantEnd != "exit 2" || refills < 100 {
		t.Errorf("%s, %d refills: the program should panic in the end and run out of fuel often", wantEnd, refills)
	}
}

func TestIndexesMove(t *testing.T) {
	t.Parallel()
	module := assemble()
	rewritten, err := rewrite.Module(module, 3, rewrite.MaxElements)
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range map[string][]byte{"original": module, "rewritten": rewritten.Wasm} {
		ctx := t.Context()
		runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features))
		defer runtime.Close(ctx)
		var called, refilled int
		count := func(counter *int) api.GoModuleFunction {
			return api.GoModuleFunc(func(_ context.Context, module api.Module, _ []uint64) {
				*counter++
				if global := module.ExportedGlobal(rewrite.FuelExport); global != nil && counter == &refilled {
					global.(api.MutableGlobal).Set(3)
				}
			})
		}
		for module, host := range map[string]struct {
			name string
			f    api.GoModuleFunction
		}{"e": {"f", count(&called)}, rewrite.ImportModule: {rewrite.ImportName, count(&refilled)}} {
			if _, err := runtime.NewHostModuleBuilder(module).NewFunctionBuilder().WithGoModuleFunction(host.f, nil,
				nil).
				Export(host.name).Instantiate(ctx); err != nil {
				t.Fatal(err)
			}
		}
		instance, err := runtime.Instantiate(ctx, wasm)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		results, err := instance.ExportedFunction("sum").Call(ctx, 5, 9)
		if err != nil || results[0] != 45 {
			t.Errorf("%s: 9 times 5 = %v, %v", name, results, err)
		}
		if called != 1 {
			t.Errorf("%s: the start function called its import %d times", name, called)
		}
		if (refilled > 0) != (name == "rewritten") {
			t.Errorf("%s: refilled %d times", name, refilled)
		}
	}
}

// assemble returns a small module in which every kind of section refers to functions by index: an import, a start
// function, a table with active, passive and expression segments, a global with ref.func, indirect and tail calls, and
// a loop.
func assemble() []byte {
	section := func(id byte, body ...byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	function := func(body ...byte) []byte { return append([]byte{byte(len(body))}, body...) }
	code := []byte{3}
	code = append(code, function(0, 0x10, 0, 0x41, 1, 0x24, 0, 0x0b)...)
	code = append(code, function(0, 0x20, 0, 0x20, 1, 0x6a, 0x0b)...)
	code = append(code, function(1, 1, 0x7f,
		0x03, 0x40, // loop
		0x20, 2, 0x20, 0, 0x41, 1, 0x11, 1, 0, 0x21, 2, // local 2 = table[1](local 2, a)
		0x20, 1, 0x41, 1, 0x6b, 0x22, 1, 0x0d, 0, // b -= 1; br_if 0
		0x0b,
		0x20, 2, 0x41, 0, 0x41, 2, 0x13, 1, 0, // return_call_indirect table[2](local 2, 0)
		0x0b)...)
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	for _, s := range [][]byte{
		section(1, 2, 0x60, 0, 0, 0x60, 2, 0x7f, 0x7f, 1, 0x7f),       // ()->(), (i32,i32)->i32
		section(2, 1, 1, 'e', 1, 'f', 0, 0),                           // e.f
		section(3, 3, 0, 1, 1),                                        // functions 1, 2, 3
		section(4, 1, 0x70, 0, 4),                                     // a table of 4
		section(6, 2, 0x7f, 1, 0x41, 0, 0x0b, 0x70, 0, 0xd2, 3, 0x0b), // i32 0; ref.func 3
		section(7, 2, 3, 'a', 'd', 'd', 0, 2, 3, 's', 'u', 'm', 0, 3), // add, sum
		section(8, 1), // start: function 1
		// Active, passive, expressions.
		section(9, 3, 0, 0x41, 0, 0x0b, 2, 1, 2, 1, 0, 1, 3, 4, 0x41, 2, 0x0b, 1, 0xd2, 2, 0x0b),
		section(10, code...),
	} {
		out = append(out, s...)
	}
	return out
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	header := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	for _, test := range []struct {
		name      string
		module    []byte
		supported bool // the error is not an UnsupportedError
	}{
		{"nothing", nil, true},
		{"truncated section", append(header[:8:8], 1, 50), true},
		{"exception section", append(header[:8:8], 13, 1, 0), false},
		{"section twice", append(header[:8:8], 1, 1, 0, 1, 1, 0), true},
		{"unknown instruction", append(header[:8:8], 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 5, 1, 3, 0, 0xfe, 0x0b),
			false},
	} {
		_, err := rewrite.Module(test.module, 1, rewrite.MaxElements)
		var unsupported *rewrite.UnsupportedError
		if err == nil || errors.As(err, &unsupported) == test.supported {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// BenchmarkModule rewrites a plugin of the Go compiler. Module includes Check.
func BenchmarkModule(b *testing.B) {
	wasm := command(b, "plugins/files")
	for name, run := range map[string]func() error{
		"Check": func() error { return rewrite.Check(wasm) },
		"Module": func() error {
			_, err := rewrite.Module(wasm, 1_000_000, rewrite.MaxElements)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzRewrite checks that a module that compiles still compiles after rewriting.
func FuzzRewrite(f *testing.F) {
	f.Add(assemble())
	f.Fuzz(func(t *testing.T, module []byte) {
		rewritten, err := rewrite.Module(module, 1000, rewrite.MaxElements)
		if err != nil {
			return
		}
		ctx := t.Context()
		config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(16)
		runtime := wazero.NewRuntimeWithConfig(ctx, config)
		defer runtime.Close(ctx)
		if _, err := runtime.CompileModule(ctx, module); err != nil {
			return
		}
		if _, err := runtime.CompileModule(ctx, rewritten.Wasm); err != nil {
			t.Errorf("the rewritten module does not compile: %v", err)
		}
	})
}
