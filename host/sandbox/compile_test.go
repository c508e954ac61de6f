package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// smallGuest returns a guest that compiles at once and fails every call.
func smallGuest() ([]byte, error) { return guesttest.Assemble(1, []byte("\x41\x00")), nil }

// TestInterpretedUntilCompiled calls an uncached plugin while the compiler is blocked, stops guests in the interpreter,
// and keeps calling while compiled code replaces the interpreter.
func TestInterpretedUntilCompiled(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: probe(t), Modules: []brokerModule{deniedHTTP},
		Limits: manifest.Limits{Time: patience}})
	defer func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}()
	release := engine.HoldCompiler()
	for range 3 {
		if got := text(t, plugin, "echo", object{"text": "interpreted"}); got != "interpreted" {
			t.Errorf("echo = %q", got)
		}
		if got := text(t, plugin, "count", object{}); got != "1" {
			t.Errorf("count = %s: something of an earlier call is left", got)
		}
	}
	if plugin.Prepared() {
		t.Error("it has been compiled: this test shows nothing")
	}
	for tool, limits := range map[string]manifest.Limits{"loop": {Time: 200 * time.Millisecond}, "recurse": {CPU: 5}} {
		var exceeded *limit.Error
		if _, err := limitedCall(t, plugin, tool, object{"n": 60}, limits); !errors.As(err, &exceeded) {
			t.Errorf("%s in the interpreter: %v", tool, err)
		}
	}
	stop := occupy(t, plugin, 1) // begins in the interpreter and ends when the compiled code is in place
	release()
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				response, err := plugin.Call(t.Context(),
					&catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "count",
						Arguments: json.RawMessage("{}")}, Limits: manifest.Limits{Rate: 1 << 30}})
				if err != nil || response.Content[0].Text != "1" {
					t.Errorf("during the change: %+v, %v", response, err)
					return
				}
			}
		})
	}
	if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() {
		t.Error(err)
	}
	cancel()
	group.Wait()
	stop()
	if got := text(t, plugin, "echo", object{"text": "compiled"}); got != "compiled" {
		t.Errorf("echo = %q", got)
	}
}

// loads is an Observer that records how code was loaded.
type loads struct {
	sandbox.Observer
	how chan string
}

func (l loads) CodeLoaded(_, how string, _ time.Duration) { l.how <- how }
func (l loads) CallQueued(string, time.Duration)          {}
func (l loads) InstanceMade(_, _ string, _ time.Duration) {}
func (l loads) InstanceRestored(string, time.Duration)    {}
func (l loads) InstanceClosed(_, _ string)                {}

// TestUnloadFreesCode removes the code of an unloaded plugin from the directory of the cache: none may be left in
// memory.
func TestUnloadFreesCode(t *testing.T) {
	t.Parallel()
	dir, observer := t.TempDir(), loads{how: make(chan string, 10)}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: dir, Observer: observer})
	if err != nil {
		t.Fatal(err)
	}
	wasm := guesttest.Assemble(1, []byte{0x41, 0})
	plugin := engine.Load(sandbox.Spec{Name: "a", Wasm: func() ([]byte, error) { return wasm, nil }})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{sandbox.FromCompiler, sandbox.FromCache, sandbox.FromCompiler} {
		if err := plugin.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-observer.how; got != want {
			t.Errorf("the code is loaded from the %s, want the %s", got, want)
		}
		if !plugin.Unload() {
			t.Fatal("it is not unloaded")
		}
		if want == sandbox.FromCache {
			files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			if err := os.Remove(files[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestUnloadUncalled: code that was compiled ahead of calls is not kept in memory, but that of a plugin in use is, and
// that which would have to be compiled again.
func TestUnloadUncalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dir      string
		calls    int
		unloaded bool
	}{
		"compiled ahead":    {t.TempDir(), 0, true},
		"called":            {t.TempDir(), 1, false},
		"without directory": {"", 0, false},
	} {
		engine, err := sandbox.New(&sandbox.Options{CacheDir: test.dir})
		if err != nil {
			t.Fatal(err)
		}
		plugin := engine.Load(sandbox.Spec{Name: "a", Digest: "sha256:0123", Wasm: smallGuest})
		if err := plugin.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range test.calls {
			_, _ = call(t, plugin, "any", object{})
		}
		plugin.UnloadUncalled()
		if used := engine.Used(); (used == 0) != test.unloaded || !plugin.Prepared() {
			t.Errorf("%s: it takes %d bytes; prepared: %v", name, used, plugin.Prepared())
		}
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}
}

// withTypes adds n types to a module whose first section has fewer than 128.
func withTypes(module []byte, n int) []byte {
	const header = 8
	size, count := int(module[header+1]), module[header+2]
	types := binary.AppendUvarint(nil, uint64(int(count)+n))
	types = append(types, module[header+3:header+2+size]...)
	types = append(types, bytes.Repeat([]byte{0x60, 0, 0}, n)...)
	out := binary.AppendUvarint(append(bytes.Clone(module[:header]), 1), uint64(len(types)))
	return append(append(out, types...), module[header+2+size:]...)
}

// TestSameCodeLoadedConcurrently loads the cached code of one module for two plugins at once. wazero shares code with
// other runtimes before it is complete.
func TestSameCodeLoadedConcurrently(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	wasm := withTypes(guesttest.Assemble(1, []byte{0x41, 0}), 9000)
	var plugins []*sandbox.Plugin
	for _, name := range []string{"a", "b"} {
		spec := sandbox.Spec{Name: name, Wasm: func() ([]byte, error) { return wasm, nil }}
		plugins = append(plugins, engine.Load(spec))
	}
	t.Cleanup(func() {
		if err := errors.Join(plugins[0].Close(), plugins[1].Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	for round := range 60 {
		var group sync.WaitGroup
		for i, plugin := range plugins {
			group.Go(func() {
				for range i * round * 30 { // lets the second one come later and later
					sha256.Sum256(wasm)
				}
				if err := plugin.Prepare(t.Context()); err != nil {
					t.Error(err)
				}
				request := &abi.Request{Method: abi.ListHandlers}
				_, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request})
				var guest *catalog.GuestError
				if !errors.As(err, &guest) {
					t.Errorf("%v, want an error because the guest does not respond", err)
				}
			})
		}
		group.Wait()
		for _, plugin := range plugins {
			if !plugin.Unload() {
				t.Fatal("it is not unloaded")
			}
		}
	}
}

// TestCompiledCodeIsCached checks that a later process uses compiled code at once.
func TestCompiledCodeIsCached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 2 {
		engine, err := sandbox.New(&sandbox.Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		plugin := engine.Load(sandbox.Spec{Name: "small", Wasm: smallGuest, Limits: manifest.Limits{Time: patience}})
		if i == 0 {
			err = plugin.Prepare(t.Context())
		} else {
			release := engine.HoldCompiler()
			// The guest does not answer, which is no matter here.
			_, _ = plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
			release()
		}
		if err != nil || !plugin.Prepared() {
			t.Errorf("process %d: prepared: %v, %v", i, plugin.Prepared(), err)
		}
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestOutline checks that a later process loads compiled code without reading the plugin, and reads it if what the
// earlier one has left is damaged or incomplete.
func TestOutline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(budget int64) (plugin *sandbox.Plugin, reads *int, stop func()) {
		t.Helper()
		engine, err := sandbox.New(&sandbox.Options{CacheDir: dir, MemoryBudget: budget})
		if err != nil {
			t.Fatal(err)
		}
		reads = new(int)
		plugin = engine.Load(sandbox.Spec{Name: "small", Digest: "sha256:0123", Wasm: func() ([]byte, error) {
			*reads++
			return smallGuest()
		}, Limits: manifest.Limits{Time: patience}})
		return plugin, reads, func() {
			t.Helper()
			if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	run := func() int {
		t.Helper()
		plugin, reads, stop := start(0)
		defer stop()
		if err := plugin.Prepare(t.Context()); err != nil || !plugin.Prepared() {
			t.Errorf("prepared: %v, %v", plugin.Prepared(), err)
		}
		return *reads
	}
	if reads := run(); reads != 1 {
		t.Errorf("read %d times at first", reads)
	}
	outlines, err := filepath.Glob(filepath.Join(dir, "images", "0123-*.outline"))
	if err != nil || len(outlines) != 1 {
		t.Fatalf("%s, %v", outlines, err)
	}
	code, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil || len(code) != 1 {
		t.Fatalf("%s, %v", code, err)
	}
	outline, err := os.ReadFile(outlines[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"nothing":         func() error { return nil },
		"empty":           func() error { return os.Truncate(outlines[0], 0) },
		"half":            func() error { return os.Truncate(outlines[0], int64(len(outline)/2)) },
		"another's stub":  func() error { return os.WriteFile(outlines[0], append(outline, 0, 1, 0), 0o600) },
		"without code":    func() error { return os.Remove(code[0]) },
		"half of a code":  func() error { return os.Truncate(code[0], 100) },
		"without outline": func() error { return os.Remove(outlines[0]) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		want := 1
		if name == "nothing" {
			want = 0
		}
		if reads := run(); reads != want {
			t.Errorf("%s: read %d times, want %d", name, reads, want)
		}
		if reads := run(); reads != 0 {
			t.Errorf("after %s: read %d times", name, reads)
		}
	}
	plugin, reads, stop := start(1)
	var exceeded *limit.Error
	if err := plugin.Prepare(t.Context()); !errors.As(err, &exceeded) || *reads != 0 || !plugin.Cached() {
		t.Errorf("without memory: %v, read %d times, cached: %v", err, *reads, plugin.Cached())
	}
	stop()
	if err := os.Remove(code[0]); err != nil {
		t.Fatal(err)
	}
	plugin, _, stop = start(0)
	defer stop()
	if plugin.Cached() {
		t.Error("it counts as cached without its code")
	}
}

// TestInvalidCode checks that the first Prepare or Call reports a module that does not compile.
func TestInvalidCode(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	// I32.add of nothing.
	invalid := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x05\x01\x03\x00\x6a\x0b")
	for name, first := range map[string]func(*sandbox.Plugin) error{
		"Prepare": func(p *sandbox.Plugin) error { return p.Prepare(t.Context()) },
		"Call": func(p *sandbox.Plugin) error {
			_, err := p.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
			return err
		},
	} {
		plugin := engine.Load(sandbox.Spec{Name: "invalid", Wasm: func() ([]byte, error) { return invalid, nil }})
		if err := first(plugin); err == nil || plugin.Prepared() {
			t.Errorf("%s: %v", name, err)
		}
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	}
}
