package extism_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// guest builds the test guest, whose exports make it one of the first family.
func guest(t testing.TB) []byte {
	t.Helper()
	return guesttest.Build(t, "dev/kit/guesttest/guests/extism")
}

// second converts the guest to the second family: it renames an export that only the first family has.
func second(t testing.TB, wasm []byte) []byte {
	t.Helper()
	return rename(t, wasm, "describe", "describf")
}

// rename replaces a name in the export or import section by another of the same length.
func rename(t testing.TB, wasm []byte, from, to string) []byte {
	t.Helper()
	from, to = string(rune(len(from)))+from+"\x00", string(rune(len(to)))+to+"\x00"
	if bytes.Count(wasm, []byte(from)) != 1 || len(from) != len(to) {
		t.Fatalf("the guest does not have the name %q once", from)
	}
	return bytes.Replace(wasm, []byte(from), []byte(to), 1)
}

// setup has the parameters of load.
type setup struct {
	wasm    []byte
	config  string
	http    *httpbroker.Broker
	spec    sandbox.Spec
	options sandbox.Options
}

func load(t testing.TB, s setup) *sandbox.Plugin {
	t.Helper()
	module, err := wasmfile.Read(s.wasm)
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := extism.New(module, &extism.Options{Config: []byte(s.config), HTTP: s.http})
	if err != nil {
		t.Fatal(err)
	}
	s.options.CacheDir = guesttest.CacheDir(t)
	engine, err := sandbox.New(&s.options)
	if err != nil {
		t.Fatal(err)
	}
	s.spec.Name, s.spec.Wasm = "guest", func() ([]byte, error) { return s.wasm, nil }
	adapter.Equip(&s.spec)
	s.spec.Limits.Time = cmp.Or(s.spec.Limits.Time, 10*time.Minute) // on a busy machine
	plugin := engine.Load(s.spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return plugin
}

type object map[string]any

func call(t testing.TB, plugin *sandbox.Plugin, tool string, arguments object) (*abi.Response, error) {
	t.Helper()
	return limitedCall(t, plugin, tool, arguments, manifest.Limits{})
}

func limitedCall(t testing.TB, plugin *sandbox.Plugin, tool string, arguments object,
	limits manifest.Limits) (*abi.Response, error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: tool,
		Arguments: raw}, Limits: limits})
}

// text calls a tool and returns the single text of its response.
func text(t testing.TB, plugin *sandbox.Plugin, tool string, arguments object) string {
	t.Helper()
	response, err := call(t, plugin, tool, arguments)
	if err != nil || response.IsError || len(response.Content) != 1 || response.Content[0].Type != abi.Text {
		t.Fatalf("%s: %+v, %v", tool, response, err)
	}
	return response.Content[0].Text
}

// families runs test with both forms of the guest.
func families(t *testing.T, test func(t *testing.T, wasm []byte)) {
	t.Helper()
	t.Run("v1", func(t *testing.T) { t.Parallel(); test(t, guest(t)) })
	t.Run("v2", func(t *testing.T) { t.Parallel(); test(t, second(t, guest(t))) })
}

// wants checks that the text of the error contains all parts.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q lacks %q", err, part)
		}
	}
}
