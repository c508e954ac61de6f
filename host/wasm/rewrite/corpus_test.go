package rewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// corpus visits the Wasm files in the sources of two required modules: programs of many compilers, and the test suite
// of the core specification. It skips the test if the sources are absent.
func corpus(t *testing.T, visit func(compiler, path string, wasm []byte)) {
	t.Helper()
	for _, module := range []string{"github.com/tetratelabs/wazero", "github.com/extism/go-sdk"} {
		root := sources(t, module)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".wasm" {
				return err
			}
			wasm, err := os.ReadFile(path)
			if err == nil {
				visit(compilerOf(path[len(root):], wasm), path[len(root):], wasm)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sources returns the directory with the sources of a module.
func sources(t *testing.T, module string) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil || len(bytes.TrimSpace(dir)) == 0 {
		testprogram.Missing(t, fmt.Sprintf("no sources of %s: %v", module, err))
	}
	return string(bytes.TrimSpace(dir))
}

// compilerOf returns the compiler of a file, derived from its path or from a name in the file.
func compilerOf(path string, wasm []byte) string {
	for _, hint := range [][2]string{
		{"/spectest/v2/", "the specification's tests"}, {"/spectest/tail-call/",
			"the specification's tests"}, {"/spectest/", ""},
		{"/fuzzcases/", "fuzzing"}, {"tinygo", "TinyGo"}, {"cargo", "Rust"}, {"rust", "Rust"}, {"zig-cc",
			"C (zig cc)"}, {"zig", "Zig"},
		{"assemblyscript", "AssemblyScript"}, {"emscripten", "C++ (Emscripten)"}, {"haskell", "Haskell"},
	} {
		if strings.Contains(path, hint[0]) {
			return hint[1]
		}
	}
	for _, hint := range [][2]string{{"TinyGo", "TinyGo"}, {"tinygo", "TinyGo"}, {"rustc", "Rust"},
		{"Go cmd/compile", "Go"}, {"clang", "C"}} {
		if bytes.Contains(wasm, []byte(hint[0])) {
			return hint[1]
		}
	}
	return "by hand"
}

// endless is the panic value for a guest that asks for fuel too often.
const endless = "endless"

func valid(t *testing.T, wasm []byte) bool {
	t.Helper()
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	defer runtime.Close(context.Background())
	_, err := runtime.CompileModule(t.Context(), wasm)
	return err == nil
}

// runModule runs a module with stubbed imports, except those of the specification's module spectest. A command gets an
// argument and a file; of any other module, each exported function is called.
func runModule(t *testing.T, wasm, spectest []byte, config wazero.RuntimeConfig, quantum int64) *trace {
	t.Helper()
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features).WithMemoryLimitPages(1<<10))
	defer runtime.Close(context.Background())
	tr := new(trace)
	compiled, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		tr.note("compile: %s", trap(err))
		return tr
	}
	if bytes.Contains(wasm, []byte("spectest")) {
		if _, err := runtime.InstantiateWithConfig(ctx, spectest,
			wazero.NewModuleConfig().WithName("spectest")); err != nil {
			t.Error(err)
		}
	}
	if bytes.Contains(wasm, []byte(wasi_snapshot_preview1.ModuleName)) {
		wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	}
	tr.stub(t, runtime, compiled, quantum)
	var output bytes.Buffer
	files := fstest.MapFS{"a.txt": {Data: []byte("a line\nand another\n")}, "sub dir/b.txt": {}}
	module, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").
		WithArgs("program", "/a.txt", "a.txt").WithStdout(&output).WithStderr(&output).WithFS(files).WithEnv("NAME",
		"value"))
	tr.modules++
	if err != nil {
		tr.refused++
		tr.note("start: %s", trap(err))
	} else {
		tr.callAll(t, module)
	}
	tr.note("output: %q", output.Bytes())
	return tr
}

func (tr *trace) callAll(t *testing.T, module api.Module) {
	functions := module.ExportedFunctionDefinitions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		definition := functions[name]
		if name == "_start" || !numeric(definition.ParamTypes()) || !numeric(definition.ResultTypes()) {
			continue
		}
		for _, n := range []uint64{0, 1, 7, 4096} {
			results, err := module.ExportedFunction(name).Call(t.Context(),
				slices.Repeat([]uint64{n}, len(definition.ParamTypes()))...)
			tr.calls++
			if err != nil {
				tr.traps++
				tr.note("%s(%d): %s", name, n, trap(err))
				if module.IsClosed() {
					return
				}
				continue
			}
			tr.note("%s(%d) = %x", name, n, results)
		}
	}
	if len(module.ExportedMemoryDefinitions()) > 0 {
		memory := module.Memory()
		data, _ := memory.Read(0, memory.Size())
		tr.note("memory: %d bytes, %08x", len(data), crc32.ChecksumIEEE(data))
	}
}

// stub links functions that record their parameters and return 0, and the specification's host module.
func (tr *trace) stub(t *testing.T, runtime wazero.Runtime, compiled wazero.CompiledModule, quantum int64) {
	ctx := t.Context()
	builders := map[string]wazero.HostModuleBuilder{}
	seen := map[string]bool{"spectest": true, wasi_snapshot_preview1.ModuleName: true}
	for _, definition := range compiled.ImportedFunctions() {
		module, name, _ := definition.Import()
		if seen[module] || seen[module+"\n"+name] {
			continue
		}
		seen[module+"\n"+name] = true
		function := func(_ context.Context, guest api.Module, stack []uint64) {
			for i, parameter := range definition.ParamTypes() {
				if parameter == api.ValueTypeI32 || parameter == api.ValueTypeF32 {
					stack[i] = uint64(uint32(stack[i])) // the upper half is undefined
				}
			}
			tr.note("%s.%s%x", module, name, stack[:len(definition.ParamTypes())])
			clear(stack[:len(definition.ResultTypes())])
		}
		if module == rewrite.ImportModule {
			function = func(_ context.Context, guest api.Module, _ []uint64) {
				const most = 20_000
				if tr.refills++; tr.refills > most {
					panic(endless)
				}
				guest.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal).Set(uint64(quantum))
			}
		}
		if builders[module] == nil {
			builders[module] = runtime.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(function), definition.ParamTypes(),
			definition.ResultTypes()).Export(name)
	}
	for module, builder := range builders {
		if _, err := builder.Instantiate(ctx); err != nil {
			tr.note("link %s: %v", module, err)
		}
	}
}

// TestCorpus compares the modules of the corpus with their rewritten versions, as TestEquality does for generated ones.
func TestCorpus(t *testing.T) {
	t.Parallel()
	spectest, err := os.ReadFile(filepath.Join(sources(t, "github.com/tetratelabs/wazero"),
		"internal/integration_test/spectest/testdata/spectest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	totals := map[string]*trace{}
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	corpus(t, func(compiler, path string, wasm []byte) {
		if compiler == "" {
			return
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			config, quantum := wazero.NewRuntimeConfigInterpreter(), int64(10)
			if len(wasm) > 4096 {
				config = wazero.NewRuntimeConfigCompiler()
			}
			if len(wasm) > 100_000 {
				quantum = 250
			}
			rewritten, err := rewrite.Module(wasm, quantum, rewrite.MaxElements)
			if err != nil || !valid(t, wasm) {
				return // unsupported, or invalid on purpose
			}
			got := runModule(t, rewritten.Wasm, spectest, config, quantum)
			if slices.ContainsFunc(got.lines, func(line string) bool {
				return strings.Contains(line, endless) || strings.Contains(line, "not instantiated")
			}) {
				return // its imports cannot be stubbed
			}
			if want := runModule(t, wasm, spectest, config, quantum); !slices.Equal(got.lines, want.lines) {
				t.Errorf("%s:\nrewritten\n%.2000s\noriginal\n%.2000s", path, strings.Join(got.lines, "\n"),
					strings.Join(want.lines, "\n"))
			}
			mu.Lock()
			defer mu.Unlock()
			if totals[compiler] == nil {
				totals[compiler] = new(trace)
			}
			totals[compiler].add(got)
		})
	})
	group.Wait()
	for _, compiler := range slices.Sorted(maps.Keys(totals)) {
		t.Logf("%-26s %s", compiler, totals[compiler])
	}
	for _, compiler := range []string{"Rust", "TinyGo", "Zig", "the specification's tests"} {
		if total := totals[compiler]; total == nil || total.modules < 2 || total.refills == 0 {
			t.Errorf("%s: too few cases: %v", compiler, total)
		}
	}
}

func (tr *trace) add(other *trace) {
	tr.modules += other.modules
	tr.refused += other.refused
	tr.calls += other.calls
	tr.traps += other.traps
	tr.refills += other.refills
}

func (tr *trace) String() string {
	return fmt.Sprintf("%d modules, of which %d end or trap at their start; %d calls, of which %d trap; fuel was "+
		"asked for %d times",
		tr.modules, tr.refused, tr.calls, tr.traps, tr.refills)
}
