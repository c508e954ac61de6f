package compile_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// answer is a module with a function that returns 42.
var answer = []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x41\x2a\x0b")

// sum is the same with the value in a global, which a constant expression computes.
var sum = []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00" +
	"\x06\x09\x01\x7f\x00\x41\x28\x41\x02\x6a\x0b\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x23\x00\x0b")

// passive is the same with the value in a passive data segment, which the function reads.
var passive = []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x05\x01\x01f\x00\x00\x0c\x01\x01\x0a\x13\x01\x11\x00\x41\x00\x41\x00\x41\x01\xfc\x08\x00\x00" +
	"\x41\x00\x2d\x00\x00\x0b\x0b\x04\x01\x01\x01\x2a")

// runtimeAt returns a runtime with its cache at dir.
func runtimeAt(t *testing.T, dir string) wazero.Runtime {
	t.Helper()
	cache, err := compile.NewCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), compile.Config(cache))
	t.Cleanup(func() {
		if err := errors.Join(r.Close(context.Background()), cache.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for name, module := range map[string][]byte{"constant": answer, "constant expression": sum,
		"passive data": passive} {
		t.Run(name, func(t *testing.T) { testCompile(t, module) })
	}
}

func stub(t *testing.T, wasm []byte) []byte {
	t.Helper()
	stub, err := rewrite.Stub(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return stub
}

func testCompile(t *testing.T, wasm []byte) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := compile.Load(t.Context(), runtimeAt(t, dir), wasm); !errors.Is(err, compile.ErrNotCached) {
		t.Fatalf("before it is compiled: %v", err)
	}
	path, err := new(compile.Compiler).Compile(t.Context(), dir, wasm, stub(t, wasm), 1)
	if err != nil {
		t.Fatal(err)
	}
	r := runtimeAt(t, dir)
	module, err := compile.Load(t.Context(), r, stub(t, wasm))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := r.InstantiateModule(t.Context(), module, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := instance.ExportedFunction("f").Call(t.Context()); err != nil || got[0] != 42 {
		t.Errorf("%v, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || filepath.Dir(filepath.Dir(path)) != dir {
		t.Errorf("%s in %v, %v", path, entries, err)
	}
}

// TestLoadDoesNotCompile loads modules that are not in the cache. It fails if a version of wazero compiles them.
func TestLoadDoesNotCompile(t *testing.T) {
	t.Parallel()
	wasm := guesttest.Bombs()["1,000 nested loops with 2,000 locals"]()
	begin := time.Now()
	if _, err := compile.Load(t.Context(), runtimeAt(t, t.TempDir()), wasm); !errors.Is(err, compile.ErrNotCached) {
		t.Error(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("after %v", took)
	}
}

// TestHostileModuleCompiler gives hostile modules to the compiler under small limits, and replaces the compiler by
// programs that hang, crash, or produce invalid output.
func TestHostileModuleCompiler(t *testing.T) {
	t.Parallel()
	loops := guesttest.Bombs()["1,000 nested loops with 2,000 locals"]
	const small, large, long = 64 << 20, 1 << 30, time.Hour
	for name, test := range map[string]struct {
		wasm      func() []byte
		functions int
		limits    compile.Limits
		want      string
	}{
		"memory": {loops, 3, compile.Limits{Memory: 192 << 20, CPU: long, Time: long, Code: 16,
			BaseCode: small}, "it took more than 192 MiB of memory"},
		"processor time": {loops, 3, compile.Limits{Memory: large, CPU: time.Second, Time: long, Code: 16,
			BaseCode: small}, "it took more than 1s of processor time"},
		"time": {loops, 3, compile.Limits{Memory: large, CPU: long, Time: 500 * time.Millisecond, Code: 16,
			BaseCode: small}, "it took longer than 500ms"},
		"code": {guesttest.Bombs()["a million elements"], 2, compile.Limits{Memory: large, CPU: long, Time: long,
			BaseCode: 100}, "it made more than 0 MiB of code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && name != "time" {
				t.Skip("bounded in another way")
			}
			c := compile.Compiler{Limits: test.limits}
			dir := t.TempDir()
			_, err := c.Compile(t.Context(), dir, test.wasm(), stub(t, test.wasm()), test.functions)
			var limit *compile.LimitError
			if !errors.As(err, &limit) || !strings.Contains(limit.Reason, test.want) {
				t.Errorf("%v", err)
			}
			checkEmpty(t, dir)
		})
	}
	dir := t.TempDir()
	path, err := new(compile.Compiler).Compile(t.Context(), dir, answer, stub(t, answer), 1)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder, file := filepath.Base(filepath.Dir(path)), filepath.Base(path)
	changed := func(at int, to byte) []byte {
		data := bytes.Clone(code)
		data[at] = to
		return data
	}
	version := int(code[6])
	for name, test := range map[string]struct {
		left  []byte
		after string
		want  string
	}{
		"hangs": {nil, "sleep 1000", "it took longer"},
		"dies":  {nil, "kill -9 $$", "the kernel killed it"},
		"crashes": {nil, "echo panic: out of range; exit 2",
			"it crashed (exit status 2): panic: out of range"},
		"leaves nothing":                   {nil, "exit 0", "is not code"},
		"leaves nonsense":                  {[]byte("nonsense"), "", "is not code"},
		"leaves a part":                    {code[:len(code)-10], "", "is not code"},
		"leaves code and more":             {append(bytes.Clone(code), 0), "", "is not code"},
		"announces four billion functions": {changed(7+version+3, 0xff), "", "it has the code of"},
		"functions outside of the code":    {changed(7+version+4+7, 0x7f), "", "is not code"},
		"four exabytes of code":            {changed(7+version+4+8+7, 0x3f), "", "the sizes of its parts are inconsistent"},
		"a wrong checksum":                 {changed(len(code)-6, code[len(code)-6]+1), "", "checksum"},
		"exception handlers":               {changed(len(code)-1, 1), "", "it has data after the code"},
		"another version":                  {changed(8, 'x'), "", "is not code"},
		"code of another module": {code,
			"mv " + folder + "/" + file + " " + folder + "/" + strings.Repeat("0", 64), "no compiled code"},
		"code of two modules": {code, "cp " + folder + "/" + file + " " + folder + "/" + strings.Repeat("0", 64),
			"is not code"},
		"a link to code": {code, "mv " + folder + "/" + file + " ../code; ln -s ../../code " + folder + "/" + file,
			"is not code"},
		"talks without end": {nil, "yes", "it took longer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				t.Skip("the compiler is replaced by a shell script")
			}
			temp := t.TempDir()
			script := "#!/bin/sh\n"
			if test.left != nil {
				source := filepath.Join(temp, "left")
				if err := os.WriteFile(source, test.left, 0o600); err != nil {
					t.Fatal(err)
				}
				script += "mkdir " + folder + "; cp " + source + " " + folder + "/" + file + "\n"
			}
			program := filepath.Join(temp, "compiler")
			if err := os.WriteFile(program, []byte(script+test.after+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			cache := filepath.Join(temp, "cache")
			if err := os.Mkdir(cache, 0o700); err != nil {
				t.Fatal(err)
			}
			c := compile.Compiler{Program: program, Limits: compile.Limits{Memory: large, CPU: long,
				Time: 2 * time.Second, Code: 16, BaseCode: small}}
			if test.after == "" || strings.Contains(test.want, "code") {
				c.Limits.Time = long
			}
			if _, err := c.Compile(t.Context(), cache, answer, stub(t, answer), 1); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			if name != "a link to code" {
				checkEmpty(t, cache)
			}
		})
	}
}

// checkEmpty checks that a cache is empty.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestConcurrentHosts compiles the same module into one cache concurrently.
func TestConcurrentHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := new(compile.Compiler).Compile(t.Context(), dir, answer, stub(t, answer), 1); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if _, err := compile.Load(t.Context(), runtimeAt(t, dir), stub(t, answer)); err != nil {
		t.Error(err)
	}
}

// TestUnwritableCache checks that an unwritable cache, a canceled context and an invalid module are no *LimitError.
func TestUnwritableCache(t *testing.T) {
	t.Parallel()
	var limit *compile.LimitError
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := new(compile.Compiler).Compile(t.Context(), absent, answer, stub(t, answer), 1); err == nil || errors.As(err, &limit) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(compile.Compiler).Compile(ctx, t.TempDir(), answer, stub(t, answer), 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	invalid := bytes.Replace(answer, []byte("\x41\x2a"), []byte("\x1a\x2a"), 1)
	if _, err := new(compile.Compiler).Compile(t.Context(), t.TempDir(), invalid, stub(t, invalid), 1); err == nil ||
		errors.As(err, &limit) || !strings.Contains(err.Error(), "invalid function") {
		t.Error(err)
	}
}

// TestClean removes directories of hosts that were killed long ago.
func TestClean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{".compile-old", ".compile-new", "images"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".compile-old", "images"} {
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := compile.Clean(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
