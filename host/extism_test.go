package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const grantsOnly = `
name: guest
version: 1.0.0
permissions:
  http: [{name: api, url: %s, reason: to fetch}]
  files: [{mount: data, access: read-only, reason: to read}]
config:
  tools: {type: string}
`

// consentTo says yes to the plugin in file as it lies there, with the manifest beside it.
func (w *world) consentTo(file string, mounts map[string]grant.Mount) {
	w.t.Helper()
	w.consentWith(file, func(c *grant.Consent) { c.Mounts = mounts })
}

// consentWith is consentTo with a consent that choose has changed.
func (w *world) consentWith(file string, choose func(*grant.Consent)) {
	w.t.Helper()
	data, err := manifest.ReadFile(filepath.Join(w.folder, file), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	packed := filepath.Join(w.t.TempDir(), "packed.wasm")
	if err := os.WriteFile(packed, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	module, err := wasmfile.Read(data)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := manifest.ParseModule(module)
	if err != nil {
		w.t.Fatal(err)
	}
	consents, err := grant.Load(w.consents)
	if err != nil {
		w.t.Fatal(err)
	}
	consent := grant.Consent{Name: m.Name, Version: m.Version, Digest: module.Digest, Asked: m.Permissions,
		ApprovedBy: "test"}
	choose(&consent)
	if err := consents.Approve(w.t.Context(), consent); err != nil {
		w.t.Fatal(err)
	}
}

// TestExtismGuest drops a guest of the Extism ABI in with a manifest beside it, approves it and calls it.
func TestExtismGuest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "fetched ", r.URL.Path)
	}))
	t.Cleanup(server.Close)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "note"), []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.put("guest.yaml", fmt.Appendf(nil, grantsOnly, server.URL))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.load()
	if status := w.status("guest.wasm"); status.State != host.Pending || len(status.Tools) != 0 {
		t.Fatalf("before consent it is %s with %d tools: %s", status.State, len(status.Tools), status.Reason)
	}
	w.consentTo("guest.wasm", map[string]grant.Mount{"data": {Name: "data", Path: data}})
	w.load()
	status := w.status("guest.wasm")
	if status.State != host.Active || len(status.Tools) < 10 || len(status.Manifest.Tools) != len(status.Tools) {
		t.Fatalf("after consent it is %s with the tools %v: %s", status.State, status.Tools, status.Reason)
	}
	for tool, test := range map[string]struct{ argument, want string }{
		"echo":  {"hello", "hello"},
		"fetch": {server.URL + "/x", "200  fetched /x"},
		"read":  {"/data/note", "inside"},
	} {
		if got := w.tool(tool, map[string]string{"text": test.argument}); got != test.want {
			t.Errorf("%s = %q, want %q", tool, got, test.want)
		}
	}
}

// tool calls a tool and returns its text.
func (w *world) tool(name string, arguments any) string {
	w.t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := w.Call(w.t.Context(),
		&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: raw}})
	if err != nil || len(result.Response.Content) == 0 {
		w.t.Fatalf("%s: %+v, %v", name, result, err)
	}
	return result.Response.Content[0].Text
}

// TestExtismListingIsKept replaces what the guest was asked for on disk: a restart reads that and runs nothing.
func TestExtismListingIsKept(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	folder := t.TempDir()
	start := func(tools string) *world {
		w := newWorld(t, func(o *host.Options) {
			o.CacheDir, o.Folders = cache, []string{folder}
			o.Settings = map[string]host.Settings{"guest": {Config: map[string]any{"tools": tools}}}
		})
		w.folder = folder
		w.put("guest.yaml", []byte("name: guest\nversion: 1.0.0\nconfig: {tools: {type: string}}\n"))
		w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
		w.consentTo("guest.wasm", nil)
		w.load()
		return w
	}
	const echo = `{"tools":[{"name":"echo"}]}`
	if status := start(echo).status("guest.wasm"); strings.Join(status.Tools, " ") != "echo" {
		t.Fatalf("%+v", status)
	}
	listings, err := filepath.Glob(filepath.Join(cache, "plugins", "*.listing.json"))
	if err != nil || len(listings) != 1 {
		t.Fatalf("%v, %v", listings, err)
	}
	if err := os.WriteFile(listings[0], []byte(`{"tools":[{"name":"fail"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := start(echo).status("guest.wasm"); strings.Join(status.Tools, " ") != "fail" {
		t.Errorf("asked again at the restart: %+v", status)
	}
	if status := start(`{"tools":[{"name":"count"}]}`).status("guest.wasm"); strings.Join(status.Tools, " ") != "count" {
		t.Errorf("not asked again under another configuration: %+v", status)
	}
}

// TestExtismGuestIsAskedWithoutGrants has a guest that lists what is in a file of its mount.
func TestExtismGuestIsAskedWithoutGrants(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "note"), []byte(`{"tools":[{"name":"echo"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) {
		o.Settings = map[string]host.Settings{"guest": {Config: map[string]any{"tools": "file:/data/note"}}}
	})
	w.put("guest.yaml", fmt.Appendf(nil, grantsOnly, "https://api.example.com/"))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.consentTo("guest.wasm", map[string]grant.Mount{"data": {Name: "data", Path: data}})
	w.load()
	if status := w.status("guest.wasm"); status.State != host.Broken ||
		!strings.Contains(status.Reason, "failed in describe: open /data/note") {
		t.Errorf("%s: %s", status.State, status.Reason)
	}
}

// TestExtismGuestWithBrokenEntries: what cannot be offered is left out, and the plugin's status names it.
func TestExtismGuestWithBrokenEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Settings = map[string]host.Settings{"guest": {Config: map[string]any{"tools": `{"tools":[{"name":"echo"},
			{"name":"a.b"},{"name":5},{"name":"echo"},{"name":"read","inputSchema":{"type":"string"}},{"name":"count"}],
			"prompts":[{"name":"x y"}]}`}}}
	})
	w.put("guest.yaml", []byte("name: guest\nversion: 1.0.0\nconfig: {tools: {type: string}}\n"))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.consentTo("guest.wasm", nil)
	w.load()
	status := w.status("guest.wasm")
	if status.State != host.Active || strings.Join(status.Tools, " ") != "echo count" {
		t.Errorf("%s with %v: %s", status.State, status.Tools, status.Reason)
	}
	for _, left := range []string{`tool "a.b": name: must be 1 to 64`, "tools[2]: ", `tool "echo": name: is the same as in tools[0]`,
		`tool "read": inputSchema`, `prompt "x y": name`} {
		if !strings.Contains(status.Reason, left) {
			t.Errorf("the status lacks %q: %s", left, status.Reason)
		}
	}
	if got := w.tool("echo", map[string]string{"text": "hello"}); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// TestExtismGuestThatCannotWork: before consent the exports of a module are read, and one that cannot be called is
// broken instead of pending.
func TestExtismGuestThatCannotWork(t *testing.T) {
	t.Parallel()
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/extism")
	wasm = bytes.ReplaceAll(wasm, []byte("describe"), []byte("describf"))
	for _, list := range []string{"tools", "prompts", "resource"} {
		wasm = bytes.ReplaceAll(wasm, []byte("list_"+list), []byte("lisp_"+list))
	}
	w := newWorld(t, nil)
	w.put("guest.yaml", []byte("name: guest\nversion: 1.0.0\n"))
	w.put("guest.wasm", wasm)
	w.load()
	if status := w.status("guest.wasm"); status.State != host.Broken || status.Manifest != nil ||
		!strings.Contains(status.Reason, "exports neither describe and call nor list_tools") {
		t.Errorf("%s: %s", status.State, status.Reason)
	}
}

const functions = `
name: guest
version: 1.0.0
tools:
  - name: text_shout
    export: shout
    argument: text
    description: Shouts.
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
  - name: text_count
    export: measure
    argument: text
    result: json
    description: Counts.
    inputSchema: {type: object, properties: {text: {}}}
    outputSchema: {type: object, properties: {count: {type: integer}}, required: [count]}
  - name: all_count
    export: measure
    result: json
    description: Counts the arguments.
    inputSchema: {type: object}
`

// TestExtismFunctions offers plain functions of a guest as tools.
func TestExtismFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("guest.yaml", []byte(functions))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.consentTo("guest.wasm", nil)
	w.load()
	if status := w.status("guest.wasm"); status.State != host.Active || len(status.Tools) != 3 {
		t.Fatalf("%s with %v: %s", status.State, status.Tools, status.Reason)
	}
	for name, test := range map[string]struct{ tool, arguments, want string }{
		"text":             {"text_shout", `{"text":"hé\"llo"}`, `text HÉ"LLO`},
		"structured":       {"text_count", `{"text":"abc"}`, `{"count":3,"input":"abc"}`},
		"another type":     {"text_count", `{"text":[1, 2]}`, `{"count":6,"input":"[1, 2]"}`},
		"nothing":          {"text_count", `{}`, `{"count":0,"input":""}`},
		"all arguments":    {"all_count", `{"a":1}`, `{"count":7,"input":"{\"a\":1}"}`},
		"a failure":        {"text_count", `{"text":"fail"}`, "failed it cannot be counted"},
		"no object":        {"text_count", `{"text":"number"}`, "output schema"},
		"no text":          {"text_count", `{"text":"bytes"}`, "bytes that are not UTF-8"},
		"a wrong argument": {"text_shout", `{"text":5}`, "text: must be a string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := w.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: test.tool,
				Arguments: json.RawMessage(test.arguments)}})
			got := ""
			switch {
			case err != nil:
				got = err.Error()
			case result.Response.IsError:
				got = "failed " + result.Response.Content[0].Text
			case result.Response.StructuredContent != nil:
				got = string(result.Response.StructuredContent)
			default:
				got = "text " + result.Response.Content[0].Text
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestExtismPlaceholder: a guest that sets its header from its configuration has a placeholder there, and the server gets
// the secret.
func TestExtismPlaceholder(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "secret-of-github" {
			http.Error(w, "not allowed with "+r.Header.Get("X-Key"), http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "welcome with ", r.Header.Get("X-Key"))
	}))
	t.Cleanup(server.Close)
	w := newWorld(t, func(o *host.Options) { o.Credentials = placeholderCredentials{} })
	w.put("guest.yaml", fmt.Appendf(nil, `
name: guest
version: 1.0.0
permissions:
  http: [{name: api, url: %s, credential: github, reason: to fetch}]
config:
  api_key: {type: string, credential: github}
`, server.URL))
	w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
	w.consentTo("guest.wasm", nil)
	w.load()
	first, second := w.tool("config", map[string]string{"text": "api-key"}), w.tool("config", map[string]string{"text": "api_key"})
	if !strings.HasPrefix(first, "placeholder-") || first == second {
		t.Errorf("the configuration has %q and then %q", first, second)
	}
	got := w.tool("fetch_with_key", map[string]string{"text": server.URL})
	if got != "200  welcome with ****************" {
		t.Errorf("got %q", got)
	}
	status := w.status("guest.wasm")
	if lines := strings.Join(status.Grants.Explain("en"), "\n"); !strings.Contains(lines, "with the credential github") {
		t.Errorf("the grants do not name the credential: %s", lines)
	}
}

// placeholderCredentials has a secret for every name.
type placeholderCredentials struct{ host.Credentials }

func (placeholderCredentials) Credential(_ context.Context, _, name string) (*broker.Credential, error) {
	return &broker.Credential{Header: "Authorization", Value: "Bearer secret-of-" + name, Secrets: []string{"secret-of-" + name}}, nil
}

func (placeholderCredentials) Configured(string) bool            { return true }
func (placeholderCredentials) ConfiguredFor(string, string) bool { return true }
func (placeholderCredentials) Watch(context.Context)             {}
func (placeholderCredentials) Close() error                      { return nil }

func TestExtismGuestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ manifest, tools, want string }{
		"lists tools without functions": {"tools: [{name: x, description: x, inputSchema: {type: object}}]", "",
			"tools[0].export: is missing"},
		"lists functions that are not there": {"tools: [{name: x, export: y, description: x, inputSchema: {type: object}}]",
			"", "tool x: the module does not export the function y"},
		"lists prompts itself":  {"prompts: [{name: x}]", "", "asked for its resources and prompts"},
		"a name nobody accepts": {"", `{"tools":[{"name":"a.b"}]}`, `cannot be offered: tool "a.b": name: must be`},
		"a tool of no name":     {"", `{"tools":[{"name":5}]}`, "cannot be offered: tools[0]: "},
		"no tools":              {"", `{"tools":[]}`, "offers nothing"},
		"no listing":            {"", `[]`, "unexpected JSON"},
		"a schema of no object": {"", `{"tools":[{"name":"a","inputSchema":{"type":"string"}}]}`, "inputSchema"},
		"a hidden instruction":  {"", `{"tools":[{"name":"a","description":"x\u202ey"}]}`, "U+202E"},
		"a relative resource":   {"", `{"resources":[{"uri":"x","name":"x"}]}`, `resource "x": uri`},
		"a prompt without name": {"", `{"prompts":[{}]}`, "prompts[0]: name"},
		"a template of no value": {"", `{"resourceTemplates":[{"uriTemplate":"x:y"}]}`,
			`resourceTemplate "x:y": uriTemplate`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *host.Options) {
				o.Settings = map[string]host.Settings{"guest": {Config: map[string]any{"tools": test.tools}}}
			})
			w.put("guest.yaml", []byte("name: guest\nversion: 1.0.0\nconfig: {tools: {type: string}}\n"+test.manifest))
			w.put("guest.wasm", guesttest.Build(t, "dev/kit/guesttest/guests/extism"))
			if test.manifest == "" {
				w.consentTo("guest.wasm", nil)
			}
			w.load()
			if status := w.status("guest.wasm"); status.State != host.Broken ||
				!strings.Contains(status.Reason, test.want) {
				t.Errorf("%s: %s", status.State, status.Reason)
			}
		})
	}
}
