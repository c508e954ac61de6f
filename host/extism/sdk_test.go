package extism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/grant"
)

// compiled loads the guest in the Extism SDK for Go, whose host functions this package replaces.
func compiled(t testing.TB, wasm []byte, manifest sdk.Manifest) *sdk.CompiledPlugin {
	t.Helper()
	cache, err := wazero.NewCompilationCacheWithDir(guesttest.CacheDir(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest.Wasm = []sdk.Wasm{sdk.WasmData{Data: wasm}}
	manifest.Memory = &sdk.ManifestMemory{MaxHttpResponseBytes: -1, MaxVarBytes: -1}
	config := sdk.PluginConfig{EnableWasi: true, EnableHttpResponseHeaders: true,
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)}
	plugin, err := sdk.NewCompiledPlugin(t.Context(), manifest, config, userFunctions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended.
		if err := errors.Join(plugin.Close(context.Background()), cache.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return plugin
}

// userFunctions are hyper-mcp's, which the guest imports and the SDK lacks. They are not called.
func userFunctions() []sdk.HostFunction {
	var functions []sdk.HostFunction
	for name, types := range map[string][2][]sdk.ValueType{
		"create_elicitation":       {{sdk.ValueTypeI64}, {sdk.ValueTypeI64}},
		"create_message":           {{sdk.ValueTypeI64}, {sdk.ValueTypeI64}},
		"list_roots":               {{}, {sdk.ValueTypeI64}},
		"notify_logging_message":   {{sdk.ValueTypeI64}, {}},
		"notify_progress":          {{sdk.ValueTypeI64}, {}},
		"notify_tool_list_changed": {{}, {}},
		"notify_resource_updated":  {{sdk.ValueTypeI64}, {}},
	} {
		functions = append(functions, sdk.NewHostFunctionWithStack(name,
			func(context.Context, *sdk.CurrentPlugin, []uint64) {}, types[0], types[1]))
	}
	return functions
}

// sdkCall calls a tool in a new instance and returns the text of the result or of the error.
func sdkCall(t testing.TB, plugin *sdk.CompiledPlugin, tool string, arguments object) string {
	t.Helper()
	instance, err := plugin.Instance(t.Context(), sdk.PluginInstanceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close(t.Context())
	input, err := json.Marshal(object{"params": object{"name": tool, "arguments": arguments}})
	if err != nil {
		t.Fatal(err)
	}
	code, output, err := instance.CallWithContext(t.Context(), "call", input)
	if err != nil {
		return "failed: " + err.Error()
	}
	if code != 0 {
		return "failed"
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(output, &answer); err != nil || len(answer.Content) != 1 {
		t.Fatalf("%s gave %q: %v", tool, output, err)
	}
	return answer.Content[0].Text
}

// TestSameAsSDK runs the same calls here and in the Extism SDK and compares what the guest sees and returns.
func TestSameAsSDK(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Test", r.Method)
		w.Header().Add("X-Test", r.Header.Get("X-Asked"))
		w.WriteHeader(http.StatusAccepted)
		if r.Method != http.MethodHead {
			fmt.Fprint(w, strings.Repeat("0123456789", 1000))
		}
	}))
	t.Cleanup(server.Close)
	wasm := guest(t)
	reference := compiled(t, wasm, sdk.Manifest{Config: map[string]string{"word": "hi"},
		AllowedHosts: []string{"127.0.0.1"}})
	plugin := load(t, setup{wasm: wasm, config: `{"word":"hi"}`,
		http: client(t, grant.HTTPRule{Name: "api", URL: server.URL, Methods: []string{"GET", "HEAD", "PUT"}})})
	for _, test := range []struct {
		tool      string
		arguments object
	}{
		{"echo", object{"text": ""}},
		{"echo", object{"text": strings.Repeat("日本語", 10_001)}},
		{"input", object{"text": "x", "n": 1}},
		{"config", object{"text": "word"}},
		{"config", object{"text": "none"}},
		{"count", object{}},
		{"fail", object{"text": "why"}},
		{"mute", object{}},
		{"part", object{}},
		{"churn", object{"n": 20}},
		{"fetch", object{"text": server.URL}},
		{"fetch", object{"text": server.URL, "method": "head"}},
		{"fetch", object{"text": server.URL, "method": "PUT", "body": "sent",
			"headers": object{"X-Asked": "v"}}},
	} {
		want := sdkCall(t, reference, test.tool, test.arguments)
		response, err := call(t, plugin, test.tool, test.arguments)
		if err != nil {
			t.Errorf("%s: %v", test.tool, err)
			continue
		}
		got := response.Content[0].Text
		if response.IsError {
			got = "failed: " + got
		}
		if got != want && !(want == "failed" && response.IsError) {
			t.Errorf("%s %.100v:\nhere %.200q\nSDK  %.200q", test.tool, test.arguments, got, want)
		}
	}
}

// BenchmarkSDK is BenchmarkEcho in the SDK, with a new instance for each call.
func BenchmarkSDK(b *testing.B) {
	plugin := compiled(b, guest(b), sdk.Manifest{})
	for name, size := range map[string]int{"small": 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			arguments := object{"text": strings.Repeat("x", size)}
			for b.Loop() {
				sdkCall(b, plugin, "echo", arguments)
			}
		})
	}
}
