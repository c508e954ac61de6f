package sandbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestIdleInstanceKeepsNoCall: an instance that waits for its next call keeps neither the request of the last one, nor
// its response, nor its context, whatever state it has.
func TestIdleInstanceKeepsNoCall(t *testing.T) {
	t.Parallel()
	type inContext struct{}
	for name, spec := range map[string]sandbox.Spec{
		"clean":   {},
		"shared":  {State: manifest.StateShared},
		"session": {State: manifest.StateSession},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin := newPlugin(t, sandbox.Options{}, spec)
			var tracker memorytest.Tracker
			func() {
				arguments, err := json.Marshal(object{"text": strings.Repeat("x", 1<<20)})
				if err != nil {
					t.Fatal(err)
				}
				tracker.Bytes("the request", arguments)
				value := tracker.Bytes("the context", make([]byte, 1<<10))
				ctx, delivered := context.WithCancel(context.WithValue(t.Context(), inContext{}, value))
				defer delivered()
				response, err := plugin.Call(ctx, &catalog.Invocation{Session: "one",
					Request: &abi.Request{Method: abi.CallTool, Name: "echo", Arguments: arguments}})
				if err != nil {
					t.Fatal(err)
				}
				if text := tracker.Text("the response", response.Content[0].Text); len(text) != 1<<20 {
					t.Fatalf("the response has %d bytes", len(text))
				}
			}()
			tracker.Check(t)
			if got := text(t, plugin, "echo", object{"text": "again"}); got != "again" {
				t.Errorf("the next call: %q", got)
			}
		})
	}
}

// TestIdleComponentKeepsNoCall: nor does an instance of a component.
func TestIdleComponentKeepsNoCall(t *testing.T) {
	t.Parallel()
	type inContext struct{}
	var tracker memorytest.Tracker
	plugin := newComponent(t, fixture(t, "echo.wasm"), true, manifest.Limits{})
	func() {
		arguments := tracker.Bytes("the request", []byte(`["`+strings.Repeat("x", 100<<10)+`"]`))
		value := tracker.Bytes("the context", make([]byte, 1<<10))
		ctx, delivered := context.WithCancel(context.WithValue(t.Context(), inContext{}, value))
		defer delivered()
		response, err := plugin.Call(ctx, &catalog.Invocation{
			Request: &abi.Request{Method: abi.CallTool, Name: "echo", Arguments: arguments}})
		if err != nil {
			t.Fatal(err)
		}
		tracker.Text("the response", response.Content[0].Text)
	}()
	tracker.Check(t)
	if got, err := exported(t, plugin, "echo", "again"); err != nil || got != "again" {
		t.Errorf("the next call: %q, %v", got, err)
	}
}
