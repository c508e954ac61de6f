package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// exporting is a Contract that calls the export with the request's name. Arguments are a list of numbers and strings.
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
	result, err := guest.Call(ctx, request.Name, args)
	if err != nil {
		return nil, err
	}
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: fmt.Sprint(result)}}}, nil
}

// fixture returns a component of the package component's tests.
func fixture(t testing.TB, name string) func() ([]byte, error) {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "host/component/testdata", name))
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
	plugin := engine.Load(sandbox.Spec{Name: "component", Wasm: wasm, Contract: exporting{}, Limits: limits,
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
