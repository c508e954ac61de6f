package extism_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func TestCall(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, wasm []byte) {
		plugin := load(t, setup{wasm: wasm, config: `{"word":"hi","n":3,"list":["a"],"api_key":"k"}`})
		if got := text(t, plugin, "echo", object{"text": "日本語 <&>"}); got != "日本語 <&>" {
			t.Errorf("echo = %q", got)
		}
		for name, want := range map[string]string{"word": "hi", "n": "3", "list": `["a"]`, "api-key": "k", "none": ""} {
			if got := text(t, plugin, "config", object{"text": name}); got != want {
				t.Errorf("config %s = %q", name, got)
			}
		}
		if response, err := call(t, plugin, "fail", object{"text": "why"}); err != nil || !response.IsError ||
			response.Content[0].Text != "why" {
			t.Errorf("fail = %+v, %v", response, err)
		}
		if response, err := call(t, plugin, "mute", nil); err != nil || !response.IsError ||
			!strings.Contains(response.Content[0].Text, "-3") {
			t.Errorf("mute = %+v, %v", response, err)
		}
		_, err := call(t, plugin, "silent", nil)
		wants(t, err, "unexpected JSON")
		for range 3 {
			if got := text(t, plugin, "count", nil); got != "1 1 1" {
				t.Errorf("a call remembers another: %s", got)
			}
		}
	})
}

// TestInput compares the input of the guest with the forms of both families.
func TestInput(t *testing.T) {
	t.Parallel()
	v1 := load(t, setup{wasm: guest(t)})
	if got := text(t, v1, "input", object{"n": 1}); got != `{"params":{"arguments":{"n":1},"name":"input"}}` {
		t.Errorf("v1: %s", got)
	}
	v2 := load(t, setup{wasm: second(t, guest(t))})
	for name, test := range map[string]struct {
		request abi.Request
		want    string
	}{
		"tool": {abi.Request{Method: abi.CallTool, Name: "input", Arguments: json.RawMessage(`{"n":1}`)},
			`{"context":{"_meta":{}},"request":{"arguments":{"n":1},"name":"input"}}`},
		"prompt": {abi.Request{Method: abi.GetPrompt, Name: "greet", Arguments: json.RawMessage(`{"name":"Aki"}`)},
			`{"context":{"_meta":{}},"request":{"arguments":{"name":"Aki"},"name":"greet"}}`},
		"resource": {abi.Request{Method: abi.ReadResource, URI: "test://one"},
			`{"context":{"_meta":{}},"request":{"uri":"test://one"}}`},
		"prompt argument": {abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "greet"},
			Argument: &abi.Argument{Name: "name", Value: "A", Resolved: map[string]string{"x": "y"}}},
			`{"context":{"_meta":{}},"request":{"argument":{"name":"name","value":"A"},"context":{"arguments":{"x":"y"}},"ref":{"name":"greet","type":"prompt"}}}`},
		"template variable": {abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/resource", URI: "test://{id}"},
			Argument: &abi.Argument{Name: "id"}},
			`{"context":{"_meta":{}},"request":{"argument":{"name":"id","value":""},"ref":{"type":"resource","uri":"test://{id}"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, err := v2.Call(t.Context(), &catalog.Invocation{Request: &test.request})
			if err != nil {
				t.Fatal(err)
			}
			if got := withoutID(t, seen(response)); got != test.want {
				t.Errorf("asked\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// seen returns the input that the guest echoed, from the field that the kind of response has.
func seen(r *abi.Response) string {
	switch {
	case r.Messages != nil:
		return r.Messages[0].Content.Text
	case r.Contents != nil:
		return r.Contents[0].Text
	case r.Completion != nil:
		return r.Completion.Values[0]
	}
	return r.Content[0].Text
}

func withoutID(t *testing.T, input string) string {
	t.Helper()
	var v map[string]map[string]any
	if err := json.Unmarshal([]byte(input), &v); err != nil {
		t.Fatal(err)
	}
	if id, _ := v["context"]["id"].(string); id == "" {
		t.Errorf("no context.id in %s", input)
	}
	delete(v["context"], "id")
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSecondFamily(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: second(t, guest(t))})
	prompt, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.GetPrompt,
		Name: "greet"}})
	if err != nil || prompt.Description != "A greeting." || prompt.Messages[0].Role != "user" {
		t.Errorf("prompt = %+v, %v", prompt, err)
	}
	resource, err := plugin.Call(t.Context(),
		&catalog.Invocation{Request: &abi.Request{Method: abi.ReadResource, URI: "test://one"}})
	if err != nil || len(resource.Contents) != 2 || !bytes.Equal(resource.Contents[1].Data, []byte{1, 2, 3}) {
		t.Errorf("resource = %+v, %v", resource, err)
	}
	completion, err := plugin.Call(t.Context(),
		&catalog.Invocation{Request: &abi.Request{Method: abi.Complete,
			Ref:      &abi.Ref{Type: "ref/prompt", Name: "greet"},
			Argument: &abi.Argument{Name: "name"}}})
	if err != nil || completion.Completion.Total != 1 || !completion.Completion.HasMore {
		t.Errorf("completion = %+v, %v", completion, err)
	}
}

func TestFirstFamilyHasToolsOnly(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t)})
	response, err := plugin.Call(t.Context(),
		&catalog.Invocation{Request: &abi.Request{Method: abi.GetPrompt, Name: "greet"}})
	if err != nil || response.Error == nil || response.Error.Code != abi.CodeNotFound {
		t.Errorf("%+v, %v", response, err)
	}
}

// TestUserFunctions calls the host functions of hyper-mcp.
func TestUserFunctions(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: second(t, guest(t))})
	var reports []abi.Progress
	request := &abi.Request{Method: abi.CallTool, Name: "notify", Arguments: json.RawMessage(`{}`)}
	var updated []string
	response, err := plugin.Call(t.Context(), &catalog.Invocation{
		Request:  request,
		Progress: func(p abi.Progress) { reports = append(reports, p) },
		Updated:  func(uri string) { updated = append(updated, uri) },
	})
	if err != nil || response.Content[0].Text != `{"action":"decline"}{"roots":[]}` {
		t.Errorf("%+v, %v", response, err)
	}
	if len(reports) != 1 || reports[0] != (abi.Progress{Progress: 1, Total: 2, Message: "half"}) {
		t.Errorf("progress = %+v", reports)
	}
	if len(updated) != 1 || updated[0] != "x:y" {
		t.Errorf("updated = %q", updated)
	}
	_, err = call(t, plugin, "sample", nil)
	wants(t, err, "plugin guest", "create_message")
	request.Name = "input"
	response, err = plugin.Call(t.Context(), &catalog.Invocation{Request: request, Progress: func(abi.Progress) {}})
	if err != nil || !strings.Contains(response.Content[0].Text, `"_meta":{"progressToken":`) {
		t.Errorf("whoever wants progress must ask for it: %+v, %v", response, err)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var records bytes.Buffer
	plugin := load(t, setup{wasm: guest(t), options: sandbox.Options{Logger: slog.New(slog.NewTextHandler(&records,
		nil))},
		spec: sandbox.Spec{Limits: manifest.Limits{Log: 100}}})
	text(t, plugin, "print", object{"text": "hello"})
	for _, want := range []string{`level=INFO msg=hello plugin=guest tool=print`, `level=WARN msg=hello`,
		`level=ERROR msg=hello`, `\"data\":{\"text\":\"hello\"}`} {
		if !strings.Contains(records.String(), want) {
			t.Errorf("no record %s in\n%s", want, &records)
		}
	}
	records.Reset()
	text(t, plugin, "print", object{"text": strings.Repeat("x", 101)})
	if strings.Contains(records.String(), "xxx") || !strings.Contains(records.String(), "log limit") {
		t.Errorf("the log limit does not hold:\n%s", &records)
	}
}

// TestClockAndRandom checks that clock and random numbers are real and that the environment has nothing but
// settings of Go's runtime.
func TestClockAndRandom(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t)})
	seen := map[string]bool{}
	before := time.Now().Unix()
	for range 5 {
		var now int64
		fields := strings.SplitN(text(t, plugin, "world", nil), " ", 3)
		if len(fields) != 3 {
			t.Fatalf("%q", fields)
		}
		random, env := fields[1], fields[2]
		if err := json.Unmarshal([]byte(fields[0]), &now); err != nil || now < before || now > time.Now().Unix() {
			t.Errorf("the clock says %d", now)
		}
		if seen[random] {
			t.Errorf("two calls drew the random number %s", random)
		}
		seen[random] = true
		if !regexp.MustCompile(`^\[GOMEMLIMIT=\d+ GODEBUG=gcstoptheworld=1 GOGC=400\]$`).MatchString(env) {
			t.Errorf("the environment is %s", env)
		}
	}
}

func TestMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "note"), []byte("inside"), 0o600),
		os.Symlink("/etc/hostname", filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	mount, err := file.New(grant.Mount{Name: "data", Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	plugin := load(t, setup{wasm: guest(t), spec: sandbox.Spec{Mounts: []*file.Mount{mount}}})
	t.Cleanup(func() { _ = mount.Close() })
	if got := text(t, plugin, "read", object{"text": "/data/note"}); got != "inside" {
		t.Errorf("read = %q", got)
	}
	for _, path := range []string{"/data/out", "/data/../etc/hostname", "/etc/hostname"} {
		if response, err := call(t, plugin, "read", object{"text": path}); err != nil || !response.IsError {
			t.Errorf("%s: %+v, %v", path, response, err)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	export := func(name string, types ...wasmfile.FuncType) wasmfile.Export {
		answers := wasmfile.FuncType{Results: []wasmfile.ValueType{wasmfile.I32}}
		return wasmfile.Export{Name: name, Kind: wasmfile.KindFunc, Type: &append(types, answers)[0]}
	}
	exports := func(names ...string) []wasmfile.Export {
		var list []wasmfile.Export
		for _, name := range names {
			list = append(list, export(name))
		}
		return list
	}
	memory := new(wasmfile.Memory)
	for name, test := range map[string]struct {
		module wasmfile.Module
		want   string
	}{
		"first family":  {wasmfile.Module{Exports: exports("describe", "call"), Memory: memory}, ""},
		"second family": {wasmfile.Module{Exports: exports("list_tools", "call_tool"), Memory: memory}, ""},
		"prompts alone": {wasmfile.Module{Exports: exports("list_prompts"), Memory: memory}, ""},
		"no result": {wasmfile.Module{Exports: []wasmfile.Export{export("list_tools", wasmfile.FuncType{})},
			Memory: memory}, ""},
		"describe alone": {wasmfile.Module{Exports: exports("describe"), Memory: memory},
			"exports neither describe and call"},
		"another plugin": {wasmfile.Module{Exports: exports("count_vowels"), Memory: memory},
			"exports neither describe and call"},
		"parameters": {wasmfile.Module{Exports: []wasmfile.Export{export("call",
			wasmfile.FuncType{Params: []wasmfile.ValueType{wasmfile.I32}})}}, "call (i32) -> ()"},
		"a global of that name": {wasmfile.Module{Exports: []wasmfile.Export{{Name: "list_tools",
			Kind: wasmfile.KindGlobal}}, Memory: memory}, "exports neither"},
		"no memory": {wasmfile.Module{Exports: exports("describe", "call")}, "no memory"},
		"unknown host function": {wasmfile.Module{Exports: exports("describe", "call"), Memory: memory,
			Imports: []wasmfile.Import{{Module: "extism:host/user", Name: "get_keyring_secret"},
				{Module: "extism:host/env", Name: "alloc"}}},
			`unknown function "get_keyring_secret"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := extism.New(&test.module, nil)
			if test.want == "" && err == nil {
				return
			}
			wants(t, err, test.want)
		})
	}
	_, err := extism.New(&wasmfile.Module{Exports: exports("describe", "call"), Memory: memory},
		&extism.Options{Config: []byte("[]")})
	wants(t, err, "configuration")
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	plugin := load(t, setup{wasm: guest(t)})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "loop"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
