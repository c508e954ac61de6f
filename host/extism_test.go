package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
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
	data, err := manifest.ReadFile(filepath.Join(w.folder, file), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	packed := filepath.Join(w.t.TempDir(), "packed.wasm")
	if err := os.WriteFile(packed, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	module, err := manifest.Read(data)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := module.ParseManifest()
	if err != nil {
		w.t.Fatal(err)
	}
	consents, err := grant.Load(w.consents)
	if err != nil {
		w.t.Fatal(err)
	}
	consent := grant.Consent{Name: m.Name, Version: m.Version, Digest: module.Digest, Asked: m.Permissions,
		ApprovedBy: "test", Mounts: mounts}
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
	w.put("guest.wasm", guesttest.Build(t, "host/internal/guesttest/guests/extism"))
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
		w.put("guest.wasm", guesttest.Build(t, "host/internal/guesttest/guests/extism"))
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
	w.put("guest.wasm", guesttest.Build(t, "host/internal/guesttest/guests/extism"))
	w.consentTo("guest.wasm", map[string]grant.Mount{"data": {Name: "data", Path: data}})
	w.load()
	if status := w.status("guest.wasm"); status.State != host.Broken ||
		!strings.Contains(status.Reason, "failed in describe: open /data/note") {
		t.Errorf("%s: %s", status.State, status.Reason)
	}
}

func TestExtismGuestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ manifest, tools, want string }{
		"lists tools itself": {"tools: [{name: x, description: x, inputSchema: {type: object}}]", "",
			"asked for what it offers"},
		"a name nobody accepts": {"", `{"tools":[{"name":"a.b"}]}`, "tools[0].name"},
		"a tool twice":          {"", `{"tools":[{"name":"a"},{"name":"a"}]}`, "tools[1].name"},
		"no tools":              {"", `{"tools":[]}`, "offers nothing"},
		"no listing":            {"", `[]`, "not the JSON expected"},
		"a schema of no object": {"", `{"tools":[{"name":"a","inputSchema":{"type":"string"}}]}`, "inputSchema"},
		"a hidden instruction":  {"", `{"tools":[{"name":"a","description":"x\u202ey"}]}`, "U+202E"},
		"a relative resource":   {"", `{"resources":[{"uri":"x","name":"x"}]}`, "resources[0].uri"},
		"a prompt without name": {"", `{"prompts":[{}]}`, "prompts[0].name"},
		"a template of no value": {"", `{"resourceTemplates":[{"uriTemplate":"x:y"}]}`,
			"resourceTemplates[0].uriTemplate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *host.Options) {
				o.Settings = map[string]host.Settings{"guest": {Config: map[string]any{"tools": test.tools}}}
			})
			w.put("guest.yaml", []byte("name: guest\nversion: 1.0.0\nconfig: {tools: {type: string}}\n"+test.manifest))
			w.put("guest.wasm", guesttest.Build(t, "host/internal/guesttest/guests/extism"))
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
