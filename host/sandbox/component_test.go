package sandbox_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// exporting is an Adapter that calls the export with the request's name. Arguments are a list of numbers and strings.
// After "try ", the result is the error.
type exporting struct{}

func (exporting) Start(context.Context, *sandbox.Guest) error { return nil }

func (exporting) Serve(ctx context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	var args []any
	if err := json.Unmarshal(request.Arguments, &args); err != nil {
		return nil, err
	}
	for i, arg := range args {
		if number, ok := arg.(float64); ok {
			args[i] = uint64(number)
		}
	}
	name, tolerant := strings.CutPrefix(request.Name, "try ")
	result, err := guest.Call(ctx, name, args)
	if tolerant {
		result = err
	} else if err != nil {
		return nil, err
	}
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: fmt.Sprint(result)}}}, nil
}

// fixture returns a component of the package component's tests.
func fixture(t testing.TB, name string) func() ([]byte, error) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "host/wasm/component/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]byte, error) { return wasm, nil }
}

// newComponent loads a component. It compiles it only if compiled is set.
func newComponent(t testing.TB, wasm func() ([]byte, error), compiled bool, limits manifest.Limits) *sandbox.Plugin {
	t.Helper()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	if limits.Time == 0 {
		limits.Time = patience
	}
	plugin := engine.Load(sandbox.Spec{Name: "component", Wasm: wasm, Adapter: exporting{}, Limits: limits,
		Interfaces: wasi.New(&wasi.Options{RandomDrawn: func(ctx context.Context) {
			sandbox.GuestOf(ctx).MarkRandomDrawn()
		}})})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	if compiled {
		if err := plugin.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Cleanup(engine.HoldCompiler())
		engine.HurryClose()
	}
	return plugin
}

func exported(t testing.TB, plugin *sandbox.Plugin, export string, args ...any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		t.Fatal(err)
	}
	response, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: export,
		Arguments: raw}})
	if err != nil {
		return "", err
	}
	return response.Content[0].Text, nil
}

func TestComponent(t *testing.T) {
	t.Parallel()
	for name, compiled := range map[string]bool{"compiled": true, "interpreted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := newComponent(t, fixture(t, "echo.wasm"), compiled, manifest.Limits{})
			for range 3 {
				if got, err := exported(t, plugin, "echo", "日本語"); err != nil || got != "日本語" {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if got, err := exported(t, plugin, "fail", "why"); err != nil || got != "{1 why}" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestComponentRemembersNothing calls a component that counts in its memory.
func TestComponentRemembersNothing(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, fixture(t, "counter.wasm"), true, manifest.Limits{})
	for range 5 {
		if got, err := exported(t, plugin, "add", 1); err != nil || got != "1" {
			t.Fatalf("it counts to %q, %v", got, err)
		}
	}
}

// wat returns a component of testdata.
func wat(t testing.TB, name string) func() ([]byte, error) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata/components", name))
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]byte, error) { return wasm, nil }
}

// TestHostileComponent calls exports that break a rule, and after each one that does not: the instance of the call
// before is gone.
func TestHostileComponent(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, wat(t, "hostile.wasm"), true, manifest.Limits{CPU: 20, Memory: 1 << 20})
	for _, test := range []struct {
		export string
		args   []any
		want   string
	}{
		{"realloc-lies", []any{"text"}, "realloc: 4 bytes at 0x7ffffff0 are outside of the guest's memory"},
		{"realloc-traps", []any{"text"}, "realloc: wasm error: unreachable"},
		{"realloc-spins", []any{"text"}, "limits.cpu"},
		{"realloc-calls", []any{"text"}, "a realloc or post-return function calls an import"},
		{"post-traps", nil, "post-return: wasm error: unreachable"},
		{"post-spins", nil, "limits.cpu"},
		{"post-calls", nil, "a realloc or post-return function calls an import"},
		{"forge", nil, "handle 7 is unknown"},
		{"use-after-drop", nil, "handle 1 is unknown"},
		{"drop-twice", nil, "handle 1 is unknown"},
		{"own", nil, "handle 99 is unknown"},
		{"handles", nil, "more than 65536 handles"},
		{"spin", nil, "limits.cpu"},
		{"text", nil, "are more than a value can have"},
	} {
		_, err := exported(t, plugin, test.export, test.args...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.export, err, test.want)
		}
		if got, err := exported(t, plugin, "realloc-works", "text"); err != nil || got != "4" {
			t.Errorf("after %s: %q, %v", test.export, got, err)
		}
	}
	for range 2 {
		if got, err := exported(t, plugin, "try forge"); err != nil || !strings.HasPrefix(got, "handle 7 is unknown") {
			t.Errorf("after a failed call that the adapter ignores: %q, %v", got, err)
		}
	}
	if got, err := exported(t, plugin, "grow"); err != nil || got != "-1" {
		t.Errorf("a memory grows beyond the limit: %q, %v", got, err)
	}
}

// TestNestedComponents calls components in each other: each instance has a state of its own, and each call starts from
// the image of all.
func TestNestedComponents(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, wat(t, "nested.wasm"), true, manifest.Limits{CPU: 20, Memory: 256 << 10})
	for _, test := range []struct {
		export string
		args   []any
		want   string
	}{
		{"a#count", nil, "11"},
		{"c#twice", nil, "22"},
		{"b#count", nil, "11"},
		{"a#count", nil, "11"},
		{"b#count", nil, "11"},
		{"a#grow", []any{1}, "1"}, // three memories of a page each, and one page is left
		{"a#grow", []any{2}, "-1"},
		{"b#grow", []any{1}, "1"},
		{"c#twice", nil, "22"},
		{"c#spin", nil, "limits.cpu"}, // in b, called by c
		{"c#both", nil, "limits.cpu"}, // a and c in turn
		{"a#spin", nil, "limits.cpu"},
		{"c#twice", nil, "22"},
	} {
		got, err := exported(t, plugin, test.export, test.args...)
		if got != test.want && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v, want %s", test.export, got, err, test.want)
		}
	}
}

// TestReentrance: a component that runs cannot be called, neither by itself nor by one inside of it, and neither can one
// inside of it by it.
func TestReentrance(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, wat(t, "reentrance.wasm"), true, manifest.Limits{})
	for _, export := range []string{"self", "down", "up"} {
		if got, err := exported(t, plugin, export); err == nil || !strings.Contains(err.Error(), "a component is called while it runs") {
			t.Errorf("%s: %q, %v", export, got, err)
		}
		for _, allowed := range []string{"leaf", "sibling"} {
			if got, err := exported(t, plugin, allowed); err != nil || got != "7" {
				t.Errorf("after %s, %s: %q, %v", export, allowed, got, err)
			}
		}
	}
}

// TestFuelIsOutOfReach: a module of a component cannot get at the fuel of another one.
func TestFuelIsOutOfReach(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, wat(t, "theft.wasm"), false, manifest.Limits{})
	if got, err := exported(t, plugin, "run"); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDoubling: components that multiply each other are refused.
func TestDoubling(t *testing.T) {
	t.Parallel()
	plugin := newComponent(t, wat(t, "doubling.wasm"), false, manifest.Limits{})
	if got, err := exported(t, plugin, "run"); err == nil || !strings.Contains(err.Error(), "component instances") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestManyModules calls a component with 500 core modules.
func TestManyModules(t *testing.T) {
	t.Parallel()
	const module = "\x00asm\x01\x00\x00\x00" + // one function, which returns 7
		"\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x02\x01\x00" + "\x07\x05\x01\x01f\x00\x00" + "\x0a\x06\x01\x04\x00\x41\x07\x0b"
	wasm := []byte("\x00asm\x0d\x00\x01\x00")
	for i := range 500 {
		wasm = append(append(wasm, 1, byte(len(module))), module...)
		instance := binary.AppendUvarint([]byte{1, 0}, uint64(i))
		wasm = append(append(wasm, 2, byte(len(instance)+1)), append(instance, 0)...)
	}
	wasm = append(wasm, "\x06\x08\x01\x00\x00\x01\xf3\x03\x01f"+ // alias: function f of core instance 499
		"\x07\x05\x01\x40\x00\x00\x79"+ // type: func() -> u32
		"\x08\x06\x01\x00\x00\x00\x00\x00"+ // lift
		"\x0b\x07\x01\x00\x01f\x01\x00\x00"...) // export
	plugin := newComponent(t, func() ([]byte, error) { return wasm, nil }, false, manifest.Limits{})
	for range 2 {
		if got, err := exported(t, plugin, "f"); err != nil || got != "7" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestNoModules calls a component without core modules, which is compiled as it is. Its state is kept, so that the call
// does not come to the interpreter.
func TestNoModules(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	empty := func() ([]byte, error) { return []byte("\x00asm\x0d\x00\x01\x00"), nil }
	plugin := engine.Load(sandbox.Spec{Name: "empty", Wasm: empty, Adapter: exporting{}, State: manifest.StateShared,
		Limits: manifest.Limits{Time: patience}})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	if got, err := exported(t, plugin, "try run"); err != nil || got != `the component exports no function "run"` {
		t.Errorf("%q, %v", got, err)
	}
}

// thing is a resource of the host.
type thing struct {
	name    string
	dropped *atomic.Int32
}

func (s *thing) Drop() { s.dropped.Add(1) }

// privately is an adapter whose start calls brokers for the caller.
type privately struct {
	exporting
	starts *atomic.Int32
	start  func(context.Context, *broker.Call) error
}

func (p privately) Start(ctx context.Context, guest *sandbox.Guest) error {
	p.starts.Add(1)
	return p.start(ctx, guest.Host())
}

// TestStartOfOneCaller: what a start learned of the tenant whose call it was for is in no instance of another tenant.
func TestStartOfOneCaller(t *testing.T) {
	t.Parallel()
	db := sqlbroker.New(&grant.SQL{}, sqlbroker.Options{Dir: t.TempDir()})
	t.Cleanup(func() { _ = db.Close() })
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	web, err := httpbroker.New([]grant.HTTPRule{{Name: "server", URL: server.URL, Private: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	for name, test := range map[string]struct {
		start func(context.Context, *broker.Call) error
		want  int32 // starts for 3 calls
	}{
		"nothing": {func(context.Context, *broker.Call) error { return nil }, 1},
		"database": {func(ctx context.Context, call *broker.Call) error {
			if failure := db.Query(ctx, call, &abi.SQLStatement{SQL: "SELECT 1"}).Error; failure != nil {
				return failure
			}
			return nil
		}, 3},
		"request": {func(ctx context.Context, call *broker.Call) error {
			_, err := web.Do(ctx, call, &abi.HTTPRequest{URL: server.URL}, nil)
			return err
		}, 3},
		"command": {func(ctx context.Context, call *broker.Call) error {
			execbroker.Idle().Run(ctx, call, &abi.ExecRequest{Line: "refused"})
			return nil
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			var starts atomic.Int32
			plugin := engine.Load(sandbox.Spec{Name: "component", Wasm: fixture(t, "counter.wasm"),
				Adapter: privately{starts: &starts, start: test.start}, Interfaces: wasi.New(nil),
				Limits: manifest.Limits{Time: patience}})
			t.Cleanup(func() {
				if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
					t.Error(err)
				}
			})
			if err := plugin.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got, err := exported(t, plugin, "add", 1); err != nil || got != "1" {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if n := starts.Load(); n != test.want {
				t.Errorf("3 calls took %d starts, want %d", n, test.want)
			}
		})
	}
}

// reporting is an adapter that sends a progress report with the name of the request as its message.
type reporting struct{ exporting }

func (reporting) Serve(_ context.Context, guest *sandbox.Guest, request *abi.Request) (*abi.Response, error) {
	guest.ReportProgress(abi.Progress{Progress: 1, Message: request.Name})
	return &abi.Response{}, nil
}

// A progress report has at most 1 KiB of message, in whole characters.
func TestProgressMessage(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{Name: "component", Wasm: fixture(t, "counter.wasm"), Adapter: reporting{},
		Interfaces: wasi.New(nil), Limits: manifest.Limits{Time: patience}})
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	for message, want := range map[string]string{
		"箱":                                 "箱",
		strings.Repeat("箱", 342):            strings.Repeat("箱", 341),
		"a\xff" + strings.Repeat("b", 2000): "a" + strings.Repeat("b", 1022),
	} {
		var got string
		_, err := plugin.Call(t.Context(), &catalog.Invocation{
			Request:  &abi.Request{Method: abi.CallTool, Name: message},
			Progress: func(p abi.Progress) { got = p.Message },
		})
		if err != nil || got != want {
			t.Errorf("%q is reported as %q, %v", message, got, err)
		}
	}
}

// TestHostResources: the resources of the host are dropped with their handles, when the call ends, and when it fails.
func TestHostResources(t *testing.T) {
	t.Parallel()
	var opened, dropped atomic.Int32
	var printed atomic.Value // what a guest prints that opens a thing
	printed.Store("")
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	things := broker.Interface{Name: "test:host/things", Version: "0.2", Functions: map[string]broker.InterfaceFunc{
		"open": func(ctx context.Context, _ *broker.Call, args []any) any {
			opened.Add(1)
			sandbox.GuestOf(ctx).Print(abi.LogWarn, []byte(printed.Load().(string)))
			return &thing{args[0].(string), &dropped}
		},
		"name": func(_ context.Context, _ *broker.Call, args []any) any { return uint64(len(args[0].(*thing).name)) },
	}}
	spec := sandbox.Spec{Name: "component", Wasm: wat(t, "host.wasm"), Adapter: exporting{},
		Interfaces: []broker.Interface{things}, Limits: manifest.Limits{Time: patience}}
	plugin := engine.Load(spec)
	spec.Interfaces = nil
	without := engine.Load(spec)
	things.Version = "0.3"
	spec.Interfaces = []broker.Interface{things}
	other := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), without.Close(), other.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, test := range []struct {
		plugin *sandbox.Plugin
		export string
		args   []any
		want   string
	}{
		{plugin, "keep", nil, "1"},
		{plugin, "keep", nil, "1"}, // and not 2
		{plugin, "open-and-drop", nil, "1"},
		{plugin, "open-and-trap", nil, "unreachable"},
		{plugin, "use", []any{1}, "handle 1 is unknown"},
		{plugin, "bad-text", nil, "arguments of test:host/things@0.2.7#open: "},
		{plugin, "unknown", nil, "it calls test:host/things@0.2.7#unknown, which the host does not have"},
		{without, "keep", nil, "imports the interface test:host/things@0.2.7, which hako does not have"},
		{other, "keep", nil, "hako has version 0.3 of it"},
	} {
		before := opened.Load()
		got, err := exported(t, test.plugin, test.export, test.args...)
		if got != test.want && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v, want %s", test.export, got, err, test.want)
		}
		if err == nil && (opened.Load() != before+1 || dropped.Load() != opened.Load()) {
			t.Errorf("%s: %d things were opened and %d dropped", test.export, opened.Load(), dropped.Load())
		}
	}
	_, err = exported(t, plugin, "open-and-trap")
	if got := catalog.Stack(err); !strings.HasPrefix(got, "  at a function without a name: the build has left") {
		t.Errorf("the stack of a component is %q", got)
	}
	printed.Store("thread 'x' panicked at lib.rs:5:1:\nFailed to call 'f': Exception(Exception { message: Some(\"no city\"), " +
		"stack: Some(\"    at f (/plugin.js:5:28)\\n\") })\n")
	_, err = exported(t, plugin, "open-and-trap")
	if got := catalog.Stack(err); err == nil || err.Error() != "plugin component stopped: no city" ||
		!strings.HasPrefix(got, "  at f (plugin.js:5:28)\n") {
		t.Errorf("a guest that says why it stops: %v, %q", err, got)
	}
	if err := plugin.Close(); err != nil { // waits until failed instances are closed
		t.Fatal(err)
	}
	if opened.Load() != dropped.Load() || opened.Load() == 0 {
		t.Errorf("%d things were opened and %d dropped", opened.Load(), dropped.Load())
	}
}
