package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

func decodeFile(t *testing.T, name string) *component.Component {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../wasm/component/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := component.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// exporting returns a component that exports functions of the component itself, and of interfaces ("a:b/c#d").
func exporting(functions map[string]*component.Func) *component.Component {
	c := &component.Component{}
	for name, f := range functions {
		extern := component.Extern{Name: name, Sort: component.SortFunc, Func: f}
		if iface, function, ok := strings.Cut(name, "#"); ok {
			extern.Name = function
			extern = component.Extern{Name: iface, Sort: component.SortInstance,
				Instance: &component.InstanceType{Exports: []component.Extern{extern}}}
		}
		c.Exports = append(c.Exports, extern)
	}
	return c
}

var bare = &manifest.Manifest{Name: "x", Version: "1.0.0"}

func TestComplete(t *testing.T) {
	a, err := New(decodeFile(t, "shapes.wasm"), bare)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := a.Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(bare.Tools) != 0 || len(m.Tools) != 7 {
		t.Fatalf("%d and %d tools", len(bare.Tools), len(m.Tools))
	}
	move := m.Tools[1]
	const input = `{"additionalProperties":false,"properties":{"by":{"additionalProperties":false,"properties":` +
		`{"label":{"anyOf":[{"type":"string"},{"type":"null"}]},"x":{"maximum":2147483647,"minimum":-2147483648,` +
		`"type":"integer"},"y":`
	if move.Name != "hako_shapes_draw_1_2_3_move-shape" || !strings.HasPrefix(string(move.InputSchema), input) ||
		move.Description["en"] != "hako:shapes/draw@1.2.3#move-shape: func(shape: shape, by: point) -> shape" ||
		move.Input() == nil || move.Output() == nil {
		t.Errorf("%s: %s: %s", move.Name, move.Description, move.InputSchema)
	}
	if a, err = New(decodeFile(t, "shapes.wasm"), m); err != nil {
		t.Fatal(err)
	}
	if again, _, err := a.Complete(nil); err != nil || again != m {
		t.Errorf("a complete manifest is completed again: %v", err)
	}
}

// A manifest selects, renames and describes. Schemas that it does not give are the function's.
func TestManifestSelects(t *testing.T) {
	m, err := manifest.ParseComponent([]byte(`
name: shapes
version: 1.0.0
tools:
  - name: sum
    description: {en: Adds numbers., ja: 数を足します。}
    annotations: {readOnlyHint: true}
    limits: {time: 1s}
  - name: split
    export: hako:shapes/draw@1.2.3#divide
    inputSchema: {type: object, properties: {a: {type: integer, description: What is divided.}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(decodeFile(t, "shapes.wasm"), m)
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err = a.Complete(nil); err != nil {
		t.Fatal(err)
	}
	sum, split := m.Tools[0], m.Tools[1]
	if len(m.Tools) != 2 || sum.Description["ja"] == "" || !*sum.Annotations.ReadOnlyHint || sum.Limits.Time == 0 {
		t.Errorf("%+v", sum)
	}
	if split.Name != "split" || !strings.HasSuffix(split.Description["en"], "func(a: s64, b: s64) -> result<s64, string>") ||
		!strings.Contains(string(split.OutputSchema), `"result"`) || !strings.Contains(string(split.InputSchema), "What is") {
		t.Errorf("%+v", split)
	}
	g := &fakeGuest{result: component.Failed("division by zero")}
	response, err := a.serve(t.Context(), g, call("split", `{"a":1,"b":"0"}`))
	if err != nil || !response.IsError || response.Content[0].Text != "division by zero" ||
		g.export != "hako:shapes/draw@1.2.3#divide" || !reflect.DeepEqual(g.args, []any{int64(1), int64(0)}) {
		t.Errorf("%+v, %v, %+v", response, err, g)
	}
}

func TestComponentsWithoutTools(t *testing.T) {
	handle := &component.Type{Kind: component.KindOwn, Resource: &component.Resource{Name: "file"}}
	stream := &component.Type{Kind: component.KindStream}
	deep := u8Type
	for range 40 {
		deep = listOf(deep)
	}
	plain := function(u8Type, nil)
	for _, test := range []struct {
		name      string
		functions map[string]*component.Func
		tools     []manifest.Tool
		want      string
	}{
		{"nothing", nil, nil, "the component exports no function"},
		{"a handle", map[string]*component.Func{"f": function(handle, nil)}, nil, "f: it has a handle of a resource (file)"},
		{"a handle in an error", map[string]*component.Func{"f": function(nil, resultOf(nil, handle))}, nil, "a handle of a resource (file)"},
		{"a stream", map[string]*component.Func{"f": function(nil, stream)}, nil, "build the component for WASI 0.2"},
		{"asynchronous", map[string]*component.Func{"f": {Async: true}}, nil, "it needs WASI 0.3"},
		{"large", map[string]*component.Func{"f": function(deep, nil)}, nil, "too large for a JSON Schema"},
		{"a command", map[string]*component.Func{"wasi:cli/run@0.2.3#run": plain}, nil, "one of WASI"},
		{"a method", map[string]*component.Func{"a:b/c#[method]d.e": plain}, nil, "it belongs to a resource"},
		{"a build step", map[string]*component.Func{"exports#init": {Params: []component.Field{
			field("app-name", stringType), field("symbols", stringType), field("stub-wasi", boolType)}}}, nil,
			"while it builds the component"},
		{"a long name", map[string]*component.Func{strings.Repeat("a", 65): plain}, nil, "has 65 characters"},
		{"one name twice", map[string]*component.Func{"a:b/c#d": plain, "a:b/c.d#d": plain, "a-b": plain, "a:b/c#d.d": plain}, nil,
			"both become the tool a_b_c_d_d"},
		{"unknown", map[string]*component.Func{"f": plain}, []manifest.Tool{{Name: "g"}},
			"tools[0]: the component exports no function for the name g: it exports f"},
		{"unknown export", map[string]*component.Func{"f": plain}, []manifest.Tool{{Name: "f", Export: "a:b/c#f"}},
			"exports no function a:b/c#f"},
		{"selected handle", map[string]*component.Func{"f": function(handle, nil)}, []manifest.Tool{{Name: "f"}},
			"tools[0]: f cannot be a tool: it has a handle of a resource"},
	} {
		_, err := New(exporting(test.functions), &manifest.Manifest{Tools: test.tools})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	long := strings.Repeat("a", 65)
	a, err := New(exporting(map[string]*component.Func{long: plain}), &manifest.Manifest{Tools: []manifest.Tool{
		{Name: "short", Export: long}}})
	if err != nil || a.functions[0].Name != "short" {
		t.Errorf("a long name with a short one in the manifest: %v", err)
	}
}

// fakeGuest answers any call with result.
type fakeGuest struct {
	result   any
	err      error
	export   string
	args     []any
	reserved int64
}

func (g *fakeGuest) Call(_ context.Context, export string, args []any) (any, error) {
	g.export, g.args = export, args
	return g.result, g.err
}

func (g *fakeGuest) Host() *broker.Call { return &broker.Call{Plugin: "x"} }

func (g *fakeGuest) Limits() manifest.Limits { return manifest.Limits{Output: 1000} }

func (g *fakeGuest) OutputLimitError() *limit.Error { return &limit.Error{Limit: limit.Output} }

func (g *fakeGuest) Reserve(n int64) error { g.reserved += n; return nil }

func (g *fakeGuest) ReserveResponse(data []byte) error { return g.Reserve(int64(len(data))) }

func call(tool, arguments string) *abi.Request {
	return &abi.Request{Method: abi.CallTool, Name: tool, Arguments: json.RawMessage(arguments)}
}

func TestResponses(t *testing.T) {
	point := record(field("x", u8Type))
	text := func(s string) *abi.Response {
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: s}}}
	}
	structured := func(s string) *abi.Response { return &abi.Response{StructuredContent: json.RawMessage(s)} }
	for _, test := range []struct {
		name   string
		t      *component.Type
		result any
		want   *abi.Response
	}{
		{"nothing", nil, nil, &abi.Response{}},
		{"text", stringType, "a", text("a")},
		{"number", u8Type, uint64(1), structured(`{"result":1}`)},
		{"record", point, []any{uint64(1)}, structured(`{"x":1}`)},
		{"map", mapOf(stringType, u8Type), []any{[]any{"a", uint64(1)}}, structured(`{"a":1}`)},
		{"option of a record", option(point), component.None, structured(`{"result":null}`)},
		{"ok", resultOf(point, stringType), component.OK([]any{uint64(1)}), structured(`{"x":1}`)},
		{"ok with text", resultOf(stringType, stringType), component.OK("a"), text("a")},
		{"ok without value", resultOf(nil, stringType), component.OK(nil), &abi.Response{}},
		{"error with text", resultOf(point, stringType), component.Failed("no"), toolError("no")},
		{"error with record", resultOf(nil, point), component.Failed([]any{uint64(1)}), toolError(`{"x":1}`)},
		{"error without value", resultOf(nil, nil), component.Failed(nil), toolError("f failed")},
		{"error with option", resultOf(nil, option(stringType)), component.Failed(component.None), toolError("null")},
	} {
		a, err := New(exporting(map[string]*component.Func{"f": function(nil, test.t)}), bare)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := a.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.serve(t.Context(), &fakeGuest{result: test.result}, call("f", "{}"))
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
			continue
		}
		schema := m.Tools[0].Output()
		if (schema == nil) != (got.StructuredContent == nil) && !got.IsError {
			t.Errorf("%s: the output schema is %s", test.name, m.Tools[0].OutputSchema)
		}
		if schema != nil && !got.IsError && schema.Validate(got.StructuredContent) != nil {
			t.Errorf("%s: %v", test.name, schema.Validate(got.StructuredContent))
		}
	}
}

// A list of numbers is reserved for what it takes in the host, a text for its length.
func TestArgumentsAreReserved(t *testing.T) {
	a, err := New(exporting(map[string]*component.Func{"f": function(listOf(u8Type), nil)}), bare)
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]int64{`{"v":[` + strings.Repeat("1,", 9999) + "1]}": 16 * 10_000,
		`{"v":"` + strings.Repeat("AAAA", 10_000) + `"}`: 40_000} {
		g := &fakeGuest{}
		if _, err := a.serve(t.Context(), g, call("f", arguments)); err != nil || g.reserved < want || g.reserved > 5*want {
			t.Errorf("%v, reserved %d, want %d or some more", err, g.reserved, want)
		}
	}
}

func TestServe(t *testing.T) {
	a, err := New(exporting(map[string]*component.Func{"f": function(option(u8Type), stringType)}), bare)
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("the guest trapped")
	if _, err := a.serve(t.Context(), &fakeGuest{err: failure}, call("f", "")); !errors.Is(err, failure) {
		t.Error(err)
	}
	response, err := a.serve(t.Context(), &fakeGuest{}, call("f", `{"v":300}`))
	const want = "the arguments of f are not valid: v: must be an integer from 0 to 255. Correct them and call it again"
	if err != nil || !response.IsError || response.Content[0].Text != want {
		t.Errorf("%+v, %v", response, err)
	}
	for _, request := range []*abi.Request{call("g", "{}"), {Method: abi.GetPrompt, Name: "f"}} {
		response, err := a.serve(t.Context(), &fakeGuest{}, request)
		if err != nil || response.Error == nil || response.Error.Code != abi.CodeNotFound {
			t.Errorf("%+v, %v", response, err)
		}
	}
	var exceeded *limit.Error
	if _, err := a.serve(t.Context(), &fakeGuest{result: strings.Repeat("a", 1001)}, call("f", "")); !errors.As(err, &exceeded) ||
		exceeded.Limit != limit.Output {
		t.Error(err)
	}
}

// JSON is not made beyond the output limit, however large the value is.
func TestOutputLimit(t *testing.T) {
	texts, numbers := make([]any, 1<<16), make([]any, 1<<16)
	for i := range texts {
		texts[i], numbers[i] = strings.Repeat("\x00", 500), uint64(0)
	}
	for _, test := range []struct {
		t     *component.Type
		value any
	}{
		{listOf(stringType), texts}, {listOf(u32Type), numbers}, {listOf(u8Type), make([]byte, 1<<20)},
		{listOf(stringType), []any{strings.Repeat("\x00", 900)}},
	} {
		g := &fakeGuest{}
		_, err := encode(g, resultKey, test.t, test.value)
		var exceeded *limit.Error
		if !errors.As(err, &exceeded) || g.reserved != 0 {
			t.Errorf("%v, reserved %d", err, g.reserved)
		}
		e := encoder{limit: 1000}
		if _ = e.value(test.t, test.value); len(e.out) > 10_000 {
			t.Errorf("%d bytes of JSON were made", len(e.out))
		}
	}
}

// Types that are too large for the schemas of manifests make their function no tool, and not the component useless.
func TestSchemasFitManifests(t *testing.T) {
	for _, cases := range []int{6, 40} {
		for _, leaf := range []*component.Type{u64Type, option(option(f64Type))} {
			typ := leaf
			for {
				variant := &component.Type{Kind: component.KindVariant}
				for i := range cases {
					variant.Fields = append(variant.Fields, field(fmt.Sprintf("case-%d", i), typ))
				}
				typ = record(field("a", variant), field("b", option(typ)))
				a, err := New(exporting(map[string]*component.Func{"f": function(typ, listOf(typ))}), bare)
				if err != nil {
					if !strings.Contains(err.Error(), "too large for a JSON Schema") {
						t.Error(err)
					}
					break
				}
				if _, _, err := a.Complete(nil); err != nil {
					t.Errorf("%d cases of %s: %v", cases, leaf, err)
				}
			}
		}
	}
}
