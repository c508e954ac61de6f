package tool

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

func variantOf(fields ...component.Field) *component.Type {
	return &component.Type{Kind: component.KindVariant, Fields: fields}
}

// The types of wasmcp's WIT, as far as the tests use them.
var (
	text     = option(stringType)
	resource = &component.Type{Kind: component.KindOwn, Resource: &component.Resource{Name: "input-stream"}}
	textData = variantOf(field("text", stringType), field("text-stream", resource))
	blobData = variantOf(field("blob", listOf(u8Type)), field("blob-stream", resource))
	hints    = option(record(field("audience", option(listOf(named(component.KindEnum, "user", "assistant")))),
		field("last-modified", text), field("priority", option(f64Type))))
	blockOptions = option(record(field("annotations", hints), field("meta", text)))
	textContent  = record(field("text", textData), field("options", blockOptions))
	blob         = record(field("data", blobData), field("mime-type", stringType), field("options", blockOptions))
	link         = record(field("uri", stringType), field("name", stringType),
		field("options", option(record(field("title", text), field("size", option(u64Type)), field("meta", text)))))
	contentsOptions = option(record(field("mime-type", text)))
	contents        = variantOf(
		field("text", record(field("uri", stringType), field("text", textData), field("options", contentsOptions))),
		field("blob", record(field("uri", stringType), field("blob", blobData), field("options", contentsOptions))))
	block = variantOf(field("text", textContent), field("image", blob), field("audio", blob), field("resource-link", link),
		field("embedded-resource", record(field("resource", contents), field("options", blockOptions))))
	toolOptions = option(record(field("meta", text), field("annotations", option(record(field("title", text),
		field("read-only-hint", option(boolType))))), field("description", text), field("output-schema", text)))
	listToolsResult = record(field("meta", text), field("next-cursor", text),
		field("tools", listOf(record(field("name", stringType), field("input-schema", stringType), field("options", toolOptions)))))
	callToolResult = record(field("meta", text), field("content", listOf(block)), field("is-error", option(boolType)),
		field("structured-content", text))
	errorPayload = record(field("code", s64Type), field("message", stringType), field("data", text))
	errorCode    = variantOf(field("parse-error", errorPayload), field("internal-error", errorPayload))
	messageCtx   = record(field("client-stream", option(resource)), field("protocol-version", stringType),
		field("frame", record(field("prefix", listOf(u8Type)), field("count", u32Type))))
	emptyOptions = component.None
)

func wasmcpFunc(request, result *component.Type) *component.Func {
	return &component.Func{Params: []component.Field{field("ctx", messageCtx), field("request", request)},
		Result: resultOf(result, errorCode)}
}

const wasmcpTools = "wasmcp:mcp-v20251125/tools@0.1.1"

func wasmcpComponent() *component.Component {
	cursor := record(field("cursor", text))
	named := record(field("name", stringType), field("arguments", text))
	return exporting(map[string]*component.Func{
		wasmcpTools + "#list-tools": wasmcpFunc(cursor, listToolsResult),
		wasmcpTools + "#call-tool":  wasmcpFunc(named, option(callToolResult)),
		"wasmcp:mcp-v20251125/resources@0.1.1#read-resource": wasmcpFunc(record(field("uri", stringType)),
			option(record(field("meta", text), field("contents", listOf(contents))))),
		"other": function(nil, nil),
	})
}

// answers is a guest that gives one answer after the other.
type answers struct {
	fakeGuest
	list []any
	got  [][]any
}

func (g *answers) Call(ctx context.Context, export string, args []any) (any, error) {
	g.result, g.list = g.list[0], g.list[1:]
	g.got = append(g.got, args)
	return g.fakeGuest.Call(ctx, export, args)
}

func wasmcpTool(name, schema string, options any) []any { return []any{name, schema, options} }

func some(value any) component.Case { return component.Some(value) }

func textBlock(s string) component.Case {
	return component.Case{Value: []any{component.Case{Value: s}, emptyOptions}}
}

// A list has pages, and what it says becomes a manifest.
func TestWasmcpLists(t *testing.T) {
	options := some([]any{component.None, some([]any{some("Title"), some(true)}), some("Adds."), some(`{"type":"object"}`)})
	g := &answers{list: []any{
		component.OK([]any{component.None, some("2"), []any{wasmcpTool("a", `{"type":"object"}`, options)}}),
		component.OK([]any{component.None, component.None, []any{wasmcpTool("b", `{}`, component.None)}}),
	}}
	a, err := New(wasmcpComponent(), bare)
	if err != nil || !a.Lists() {
		t.Fatal(err)
	}
	response, err := a.serve(t.Context(), g, &abi.Request{Method: methodList})
	if err != nil {
		t.Fatal(err)
	}
	if g.got[0][0].([]any)[1] != "2025-11-25" || g.got[0][1].([]any)[0] != component.None || g.got[1][1].([]any)[0] != some("2") {
		t.Errorf("asked with %v", g.got)
	}
	m, _, err := a.Complete(response.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	first := m.Tools[0]
	if len(m.Tools) != 2 || first.Name != "a" || first.Description["en"] != "Adds." || first.Title["en"] != "Title" ||
		!*first.Annotations.ReadOnlyHint || first.OutputSchema == nil || m.Tools[1].Description["en"] != "b" {
		t.Errorf("%+v", m.Tools)
	}
	a.manifest = &manifest.Manifest{Name: "x", Version: "1.0.0", Tools: []manifest.Tool{{Name: "c", Export: "b"}}}
	if m, _, err = a.Complete(response.StructuredContent); err != nil || len(m.Tools) != 1 || m.Tools[0].Name != "c" {
		t.Errorf("%+v, %v", m, err)
	}
	a.manifest.Tools[0].Export = "z"
	if _, _, err = a.Complete(response.StructuredContent); err == nil || !strings.Contains(err.Error(), "lists no tool z") {
		t.Error(err)
	}
}

func TestWasmcpListsThatAreBroken(t *testing.T) {
	page := component.OK([]any{component.None, some("again"), []any{}})
	for name, test := range map[string]struct {
		list []any
		want string
	}{
		"an error":      {[]any{component.Failed(component.Case{Number: 1, Value: []any{int64(1), "no", component.None}})}, "list-tools: no"},
		"not JSON":      {[]any{component.OK([]any{component.None, component.None, []any{wasmcpTool("a", "{", component.None)}})}, "input-schema is not valid JSON"},
		"without end":   {slices.Repeat([]any{page}, maxPages+1), "has more than 100 pages"},
		"a wrong shape": {[]any{component.OK([]any{component.None, component.None, []any{wasmcpTool("a", `{"a":1,"a":2}`, component.None)}})}, ""},
	} {
		a, err := New(wasmcpComponent(), bare)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.serve(t.Context(), &answers{list: test.list}, &abi.Request{Method: methodList})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	broken := exporting(map[string]*component.Func{wasmcpTools + "#call-tool": function(nil, stringType)})
	if _, err := New(broken, bare); err == nil || !strings.Contains(err.Error(), "which is not that of wasmcp") {
		t.Error(err)
	}
	other := exporting(map[string]*component.Func{"wasmcp:mcp-v20990101/tools@1.0.0#call-tool": function(nil, stringType)})
	if _, err := New(other, bare); err == nil || !strings.Contains(err.Error(), "hako knows wasmcp:mcp-v20251125/*") {
		t.Error(err)
	}
}

func TestWasmcpCalls(t *testing.T) {
	annotated := some([]any{some([]any{some([]any{component.Case{}}), component.None, some(0.5)}), component.None})
	result := func(blocks ...any) component.Case {
		return component.OK(some([]any{some("meta"), blocks, component.None, component.None}))
	}
	for name, test := range map[string]struct {
		answer any
		want   string
	}{
		"text":       {result(textBlock("a")), `{"content":[{"type":"text","text":"a"}]}`},
		"annotated":  {result(component.Case{Value: []any{component.Case{Value: "a"}, annotated}}), `{"content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5}}]}`},
		"image":      {result(component.Case{Number: 1, Value: []any{component.Case{Value: []byte{1, 2}}, "image/png", emptyOptions}}), `{"content":[{"type":"image","mimeType":"image/png"}]}`},
		"link":       {result(component.Case{Number: 3, Value: []any{"a:b", "n", some([]any{some("t"), some(uint64(3)), component.None})}}), `{"content":[{"type":"resource_link","uri":"a:b","name":"n","title":"t","size":3}]}`},
		"embedded":   {result(component.Case{Number: 4, Value: []any{component.Case{Value: []any{"a:b", component.Case{Value: "x"}, some([]any{some("text/plain")})}}, emptyOptions}}), `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"x"}}]}`},
		"failed":     {component.OK(some([]any{component.None, []any{textBlock("no")}, some(true), component.None})), `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		"structured": {component.OK(some([]any{component.None, []any{}, component.None, some(`{"a":1}`)})), `{"structuredContent":{"a":1}}`},
		"unknown":    {component.OK(component.None), `{"error":{"code":"not-found","message":"the component does not know b"}}`},
		"error":      {component.Failed(component.Case{Number: 1, Value: []any{int64(1), "why", component.None}}), `{"content":[{"type":"text","text":"why"}],"isError":true}`},
		"stream":     {result(component.Case{Value: []any{component.Case{Number: 1}, emptyOptions}}), "hako does not take streams: send the data itself (text)"},
		"no JSON":    {component.OK(some([]any{component.None, []any{}, component.None, some(`{`)})), "structured-content is not valid JSON"},
		"no object":  {component.OK(some([]any{component.None, []any{}, component.None, some(`[]`)})), "structuredContent is not an object"},
		"too large":  {result(textBlock(strings.Repeat("a", 1001))), limit.Output},
	} {
		a, err := New(wasmcpComponent(), &manifest.Manifest{Tools: []manifest.Tool{{Name: "renamed", Export: "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		g := &answers{list: []any{test.answer}}
		response, err := a.serve(t.Context(), g, call("renamed", `{"x":1}`))
		got := ""
		if err != nil {
			got = err.Error()
			var exceeded *limit.Error
			if errors.As(err, &exceeded) {
				got = exceeded.Limit
			}
		} else {
			data, _ := json.Marshal(response)
			got = string(data)
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if request := g.got[0][1].([]any); request[0] != "b" || request[1] != some(`{"x":1}`) {
			t.Errorf("asked with %v", request)
		}
	}
}

// A resource without URI has the one that was asked for.
func TestWasmcpResources(t *testing.T) {
	a, err := New(wasmcpComponent(), bare)
	if err != nil {
		t.Fatal(err)
	}
	answer := []any{component.None, []any{component.Case{Value: []any{"", component.Case{Value: "x"}, component.None}}}}
	g := &answers{list: []any{component.OK(some(answer))}}
	response, err := a.serve(t.Context(), g, &abi.Request{Method: abi.ReadResource, URI: "a:b"})
	if err != nil || response.Contents[0].URI != "a:b" || response.Contents[0].Text != "x" {
		t.Errorf("%+v, %v", response, err)
	}
}

// Completions are asked for with what the caller has so far, for prompts and for resource templates.
func TestWasmcpCompletions(t *testing.T) {
	context := option(record(field("arguments", text)))
	ref := variantOf(field("prompt", record(field("name", stringType), field("title", text))), field("resource-template", stringType))
	request := record(field("argument", record(field("name", stringType), field("value", stringType))), field("ref", ref),
		field("context", context))
	result := record(field("meta", text), field("has-more", option(boolType)), field("total", option(u64Type)),
		field("values", listOf(stringType)))
	a, err := New(exporting(map[string]*component.Func{
		"wasmcp:mcp-v20251125/completions@0.1.1#complete": wasmcpFunc(request, option(result))}), bare)
	if err != nil {
		t.Fatal(err)
	}
	known := component.OK(some([]any{component.None, some(true), some(uint64(7)), []any{"Aki", "Akane"}}))
	for name, test := range map[string]struct {
		ref    abi.Ref
		answer any
		asked  component.Case
		want   *abi.Completion
	}{
		"prompt": {abi.Ref{Type: "ref/prompt", Name: "greet"}, known, component.Case{Value: []any{"greet", component.None}},
			&abi.Completion{Values: []string{"Aki", "Akane"}, Total: 7, HasMore: true}},
		"template": {abi.Ref{Type: "ref/resource", URI: "a:{b}"}, known, component.Case{Number: 1, Value: "a:{b}"},
			&abi.Completion{Values: []string{"Aki", "Akane"}, Total: 7, HasMore: true}},
		"unknown": {abi.Ref{Type: "ref/prompt", Name: "z"}, component.OK(component.None),
			component.Case{Value: []any{"z", component.None}}, nil},
	} {
		g := &answers{list: []any{test.answer}}
		response, err := a.serve(t.Context(), g, &abi.Request{Method: abi.Complete, Ref: &test.ref,
			Argument: &abi.Argument{Name: "who", Value: "A", Resolved: map[string]string{"how": "politely"}}})
		if err != nil || !reflect.DeepEqual(response.Completion, test.want) {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
		want := []any{[]any{"who", "A"}, test.asked, some([]any{some(`{"how":"politely"}`)})}
		if got := g.got[0][1]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: asked with %v, want %v", name, got, want)
		}
	}
	without, err := New(wasmcpComponent(), bare)
	if err != nil {
		t.Fatal(err)
	}
	response, err := without.serve(t.Context(), &answers{}, &abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt"}})
	if err != nil || response.Completion != nil || response.Error != nil {
		t.Errorf("a component without completions: %+v, %v", response, err)
	}
}

// Requests of other versions of wasmcp may have any other fields.
func TestFill(t *testing.T) {
	for _, form := range forms {
		if form.t.Kind == component.KindList && form.t.Length > 0 {
			continue
		}
		value := fill(record(field("a", stringType), field("b", form.t)), recordFields{"a": "x"})
		e := encoder{limit: 1000}
		if err := e.value(tupleOf(stringType, form.t), value); err != nil || !strings.HasPrefix(string(e.out), `["x",`) {
			t.Errorf("%s: %s, %v", form.name, e.out, err)
		}
	}
}
