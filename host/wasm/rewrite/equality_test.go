package rewrite_test

import (
	"archive/zip"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// trace records everything observable of a module while its exports are called.
type trace struct {
	lines []string
	// modules and calls are counted, with the number of them that trap, and how often fuel was requested.
	modules, refused, calls, traps, refills int
}

// observe instantiates a module and calls each exported function with several arguments. The trace must not depend on
// rewriting.
func observe(t *testing.T, wasm []byte, config wazero.RuntimeConfig, quantum int64) *trace {
	t.Helper()
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features))
	defer runtime.Close(context.Background())
	tr := new(trace)
	support := tr.link(t, runtime, quantum)
	module, err := runtime.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		if strings.Contains(err.Error(), "invalid") || strings.Contains(err.Error(), "compile") {
			t.Fatalf("it does not compile: %v", err)
		}
		tr.refused++
		tr.note("instantiate: %s", trap(err))
		return tr
	}
	functions := module.ExportedFunctionDefinitions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		definition := functions[name]
		if !numeric(definition.ParamTypes()) || !numeric(definition.ResultTypes()) {
			continue // the Go API has no vectors, and references differ between runs
		}
		for _, n := range []uint64{0, 1, 7, 20} {
			params := slices.Repeat([]uint64{n}, len(definition.ParamTypes()))
			results, err := module.ExportedFunction(name).Call(ctx, params...)
			tr.calls++
			if err != nil {
				tr.traps++
				tr.note("%s(%d): %s", name, n, trap(err))
				continue
			}
			tr.note("%s(%d) = %x", name, n, results)
		}
	}
	if memory := module.Memory(); memory != nil {
		data, _ := memory.Read(0, memory.Size())
		tr.note("memory: %d bytes, %08x", len(data), crc32.ChecksumIEEE(data))
	}
	tr.note("reports: %x", support.ExportedGlobal("hash").Get())
	return tr
}

func (tr *trace) note(format string, args ...any) {
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

// link makes all imports of the modules linkable and returns the module that collects their reports.
func (tr *trace) link(t *testing.T, runtime wazero.Runtime, quantum int64) api.Module {
	t.Helper()
	ctx := t.Context()
	meter := api.GoModuleFunc(func(_ context.Context, module api.Module, _ []uint64) {
		tr.refills++
		module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal).Set(uint64(quantum))
	})
	abort := api.GoModuleFunc(func(context.Context, api.Module, []uint64) { panic("aborted") })
	i32 := api.ValueTypeI32
	for module, host := range map[string]struct {
		name   string
		f      api.GoModuleFunc
		params []api.ValueType
	}{rewrite.ImportModule: {rewrite.ImportName, meter, nil}, "env": {"abort", abort,
		[]api.ValueType{i32, i32, i32, i32}}} {
		_, err := runtime.NewHostModuleBuilder(module).NewFunctionBuilder().WithGoModuleFunction(host.f, host.params,
			nil).Export(host.name).Instantiate(ctx)
		if err != nil {
			t.Fatal(err)
		}
	}
	support := read(t, "support.wasm")
	var reports api.Module
	for _, name := range []string{"__fuzz_import", "fuzzing-support"} {
		var err error
		if reports, err = runtime.InstantiateWithConfig(ctx, support,
			wazero.NewModuleConfig().WithName(name)); err != nil {
			t.Fatal(err)
		}
	}
	return reports
}

func numeric(types []api.ValueType) bool {
	return !slices.ContainsFunc(types, func(t api.ValueType) bool {
		return t != api.ValueTypeI32 && t != api.ValueTypeI64 && t != api.ValueTypeF32 && t != api.ValueTypeF64
	})
}

// trap returns the reason of a trap without stack and function indexes, which rewriting changes.
func trap(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(line, "wasm error"); i >= 0 {
		return line[i:]
	}
	return line
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// modules returns the generated modules and those of compilers whose exports can be called separately.
func modules(t *testing.T) map[string][]byte {
	t.Helper()
	archive, err := zip.OpenReader("testdata/random.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	all := map[string][]byte{"assemblyscript": read(t, "as.wasm")}
	for _, file := range archive.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if all[file.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestEquality runs original and rewritten modules in the compiler and in the interpreter, and compares results, traps,
// memory and reports.
func TestEquality(t *testing.T) {
	t.Parallel()
	const quantum = 5
	for kind, config := range map[string]wazero.RuntimeConfig{"compiler": wazero.NewRuntimeConfigCompiler(),
		"interpreter": wazero.NewRuntimeConfigInterpreter()} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var total trace
			for name, wasm := range modules(t) {
				rewritten, err := rewrite.Module(wasm, quantum, rewrite.MaxElements)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				want, got := observe(t, wasm, config, quantum), observe(t, rewritten.Wasm, config, quantum)
				if !slices.Equal(got.lines, want.lines) {
					t.Errorf("%s: rewritten\n%s\noriginal\n%s", name, strings.Join(got.lines, "\n"),
						strings.Join(want.lines, "\n"))
				}
				total.calls += got.calls
				total.traps += got.traps
				total.refused += got.refused
				total.refills += got.refills
				total.modules++
			}
			t.Logf("%d modules, of which %d trap when they start; %d calls, of which %d trap; fuel was asked for "+
				"%d times",
				total.modules, total.refused, total.calls, total.traps, total.refills)
			if total.calls < 1000 || total.traps == 0 || total.traps > total.calls/2 || total.refills < 1000 {
				t.Error("too few cases")
			}
		})
	}
}

// TestSameMeaningC is TestSameMeaning for a program of a C compiler.
func TestSameMeaningC(t *testing.T) {
	t.Parallel()
	original := read(t, "c.wasm")
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
	if !strings.Contains(end, "out of bounds") || refills < 100 {
		t.Errorf("%s, %d refills: the program should trap in the end and run out of fuel often", end, refills)
	}
}
