package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// load loads a component with a manifest.
func load(t *testing.T, path, yaml string) (*tool.Adapter, *sandbox.Plugin) {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := component.Decode(wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.ParseComponent([]byte("name: x\nversion: 1.0.0\n" + yaml))
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := tool.New(c, m)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Name: "x", Wasm: func() ([]byte, error) { return wasm, nil },
		Limits: manifest.Limits{Time: 10 * time.Minute}, Interfaces: wasi.New(&wasi.Options{
			RandomDrawn: func(ctx context.Context) { sandbox.GuestOf(ctx).MarkRandomDrawn() }})}
	adapter.Equip(&spec)
	plugin := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return adapter, plugin
}

func call(t *testing.T, plugin *sandbox.Plugin, request *abi.Request) string {
	t.Helper()
	response, err := plugin.Call(t.Context(), &catalog.Invocation{Request: request})
	if err != nil {
		t.Fatalf("%s: %v", request.Name, err)
	}
	if response.Error != nil {
		return "error: " + response.Error.Message
	}
	text := string(response.StructuredContent)
	for _, c := range response.Content {
		text += c.Text
	}
	for _, c := range response.Contents {
		text += c.URI + ": " + c.Text
	}
	for _, m := range response.Messages {
		text += m.Role + ": " + m.Content.Text
	}
	if response.IsError {
		text = "failed: " + text
	}
	return text
}

// TestCalls calls functions of every type through the sandbox. Their results fit their schemas.
func TestCalls(t *testing.T) {
	t.Parallel()
	adapter, plugin := load(t, "../../wasm/component/testdata/shapes.wasm", "")
	m, _, err := adapter.Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ tool, arguments, want string }{
		{"sum", `{"numbers":[[1,"2"],[],[3]]}`, `{"result":6}`},
		{"sum", `{"numbers":[["9007199254740993"]]}`, `{"result":"9007199254740993"}`},
		{"move-shape", `{"shape":{"tag":"empty"},"by":{"x":1,"y":2}}`, `{"result":{"tag":"empty"}}`},
		{"move-shape", `{"shape":{"tag":"line","val":[{"x":1,"y":1},{"x":2,"y":2,"label":"b"}]},"by":{"x":1,"y":2,"label":null}}`,
			`{"result":{"tag":"line","val":[{"x":2,"y":3,"label":null},{"x":3,"y":4,"label":"b"}]}}`},
		{"divide", `{"a":7,"b":2}`, `{"result":3}`},
		{"divide", `{"a":7,"b":0}`, `failed: `},
		{"maybe", `{"value":null}`, `{"result":null}`},
		{"maybe", `{"value":{"some":7}}`, `{"result":{"some":7}}`},
		{"sort", `{"words":["b","箱","bb"]}`, `{"result":["箱","bb","b"]}`},
		{"numbers", `{"a":255,"b":-128,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1.5,"j":1.5,"k":"箱","l":true}`, `{"result":["255"`},
		{"divide", `{"a":7}`, "failed: the arguments of hako_shapes_draw_1_2_3_divide are not valid: b is missing"},
	} {
		name := test.tool
		if name != "sum" {
			name = "hako_shapes_draw_1_2_3_" + name
		}
		got := call(t, plugin, &abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(test.arguments)})
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s(%s): %s, want %s", test.tool, test.arguments, got, test.want)
		}
		for i := range m.Tools {
			schema := m.Tools[i].Output()
			if m.Tools[i].Name == name && schema != nil && !strings.HasPrefix(got, "failed") {
				if err := schema.Validate([]byte(got)); err != nil {
					t.Errorf("%s: %v", got, err)
				}
			}
		}
	}
}

// built returns the path of a component that HAKO_COMPONENTS has, in a folder that names its origin. The test is skipped
// without it.
func built(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("HAKO_COMPONENTS"), folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("HAKO_COMPONENTS names no folder with ", filepath.Join(folder, name))
	}
	return path
}

// TestExamplesOfWassette calls wassette's examples, unmodified and without permissions.
func TestExamplesOfWassette(t *testing.T) {
	for _, test := range []struct{ file, tool, arguments, want string }{
		{"time-server-js.wasm", "local_time-server_time_get-current-time", `{}`, "20"},
		{"eval-py.wasm", "eval", `{"expression":"2+40"}`, "42"},
		{"eval-py.wasm", "eval", `{"expression":"nothing"}`, "failed: NameError: name 'nothing' is not defined"},
		{"get-weather-js.wasm", "get-weather", `{"city":"Sapporo"}`, "failed: "},
	} {
		t.Run(test.file+" "+test.arguments, func(t *testing.T) {
			t.Parallel()
			_, plugin := load(t, built(t, "wassette", test.file), "")
			got := call(t, plugin, &abi.Request{Method: abi.CallTool, Name: test.tool, Arguments: []byte(test.arguments)})
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
			t.Log(got)
		})
	}
}

// TestTemplatesOfWasmcp lists and calls what wasmcp's templates implement, unmodified.
func TestTemplatesOfWasmcp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, yaml string
		offered    string
		calls      map[*abi.Request]string
	}{
		{"my_tools.wasm", "", "add subtract", map[*abi.Request]string{
			{Method: abi.CallTool, Name: "add", Arguments: []byte(`{"a":1,"b":2}`)}:        "3",
			{Method: abi.CallTool, Name: "add", Arguments: []byte(`{"a":1}`)}:              "failed: Missing or invalid parameter 'b'",
			{Method: abi.CallTool, Name: "multiply", Arguments: []byte(`{"a":1,"b":2}`)}:   "error: the component does not know multiply",
			{Method: abi.GetPrompt, Name: "add"}:                                           "error: the component does not serve prompts/get",
			{Method: abi.CallTool, Name: "subtract", Arguments: []byte(`{"a":1e3,"b":2}`)}: "998",
		}},
		{"my_tools.wasm", "tools: [{name: plus, export: add, description: {en: Adds., ja: 足す。}}]", "plus",
			map[*abi.Request]string{{Method: abi.CallTool, Name: "plus", Arguments: []byte(`{"a":1,"b":2}`)}: "3"}},
		{"my_resources.wasm", "", "text://greeting text://info", map[*abi.Request]string{
			{Method: abi.ReadResource, URI: "text://greeting"}: "text://greeting: Hello from wasmcp resources!",
			{Method: abi.ReadResource, URI: "text://none"}:     "error: the component does not know text://none",
		}},
		{"my_prompts.wasm", "", "", map[*abi.Request]string{}},
		{"my_tools_py.wasm", "", "reverse uppercase", map[*abi.Request]string{
			{Method: abi.CallTool, Name: "reverse", Arguments: []byte(`{"text":"箱abc"}`)}: "cba箱",
		}},
		{"my_tools_ts.wasm", "", "example-tool", map[*abi.Request]string{
			{Method: abi.CallTool, Name: "example-tool", Arguments: []byte(`{"input":"x"}`)}: "Received: x",
		}},
		{"my_resources_py.wasm", "", "text://greeting text://info", map[*abi.Request]string{
			{Method: abi.ReadResource, URI: "text://greeting"}: "text://greeting: Hello from wasmcp resources!",
		}},
	} {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			testTemplate(t, test.file, test.yaml, test.offered, test.calls)
		})
	}
}

// testTemplate checks what a component offers and answers.
func testTemplate(t *testing.T, file, yaml, offered string, calls map[*abi.Request]string) {
	t.Helper()
	adapter, plugin := load(t, built(t, "wasmcp", file), yaml)
	if !adapter.Lists() {
		t.Fatalf("%s lists nothing", file)
	}
	listing, err := tool.List(t.Context(), plugin)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := adapter.Complete(listing)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range m.Tools {
		names = append(names, x.Name)
	}
	for _, x := range m.Resources {
		names = append(names, x.URI)
	}
	if got := strings.Join(names, " "); got != offered {
		t.Errorf("%s offers %s, want %s", file, got, offered)
	}
	for request, want := range calls {
		if got := call(t, plugin, request); got != want {
			t.Errorf("%s: %s: %s, want %s", file, request.Name, got, want)
		}
	}
	for _, p := range m.Prompts {
		arguments := map[string]string{}
		for _, a := range p.Arguments {
			arguments[a.Name] = "x"
		}
		data, _ := json.Marshal(arguments)
		if got := call(t, plugin, &abi.Request{Method: abi.GetPrompt, Name: p.Name, Arguments: data}); !strings.HasPrefix(got, "user: ") {
			t.Errorf("%s: %s", p.Name, got)
		}
	}
	if file == "my_prompts.wasm" && len(m.Prompts) == 0 {
		t.Errorf("%s lists no prompts", file)
	}
}
