package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// component returns a component of the package component's tests.
func component(t *testing.T, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("wasm", "component", "testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestComponentInTheFolder drops a component in without a manifest, approves it and calls it.
func TestComponentInTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.put("counter.wasm", component(t, "counter"))
	w.load()
	status := w.expect("counter.wasm", host.Pending, "plugin counter is new")
	if len(status.Manifest.Tools) != 4 || status.Manifest.Tools[0].Name != "add" {
		t.Fatalf("before consent its tools are %+v", status.Manifest.Tools)
	}
	w.consentTo("counter.wasm", nil)
	w.load()
	w.expect("counter.wasm", host.Active, "")
	for range 3 { // each call starts clean
		if got, err := w.call("add", `{"n":2}`); err != nil || got != `{"result":2}` {
			t.Errorf("%s, %v", got, err)
		}
	}
	if got, err := w.call("crash", `{}`); err != nil || !strings.Contains(got, "plugin counter stopped") {
		t.Errorf("a trap: %s, %v", got, err)
	}
	if got, err := w.call("add", `{"n":-1}`); err != nil || strings.Contains(got, "result") {
		t.Errorf("arguments are not checked: %s, %v", got, err)
	}
}

// TestComponentWithPermissions: files come from the mounts, requests pass the rules, and the environment is the
// configuration.
func TestComponentWithPermissions(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "fetched ", r.URL.Path)
	}))
	t.Cleanup(server.Close)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "note"), []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) {
		o.Settings = map[string]host.Settings{"fetch": {Config: map[string]any{"API_KEY": "secret"}}}
	})
	w.put("fetch.wasm", component(t, "fetch"))
	w.put("fetch.policy.yaml", fmt.Appendf(nil, "version: \"1.0\"\npermissions:\n  network: {allow: [{host: %q}]}\n"+
		"  environment: {allow: [{key: API_KEY}]}\n", server.URL))
	w.put("reader.wasm", component(t, "files"))
	w.put("reader.yaml", []byte("name: reader\nversion: 1.0.0\ntools: [{name: look, export: names}]\n"+
		"permissions: {files: [{mount: data, access: read-only, reason: to read}]}\n"))
	w.load()
	w.consentTo("fetch.wasm", nil)
	w.consentTo("reader.wasm", map[string]grant.Mount{"data": {Name: "data", Path: data}})
	w.load()
	if got := w.tools(); got != "environment get look" {
		t.Fatalf("its tools are %s", got)
	}
	for _, test := range []struct{ tool, arguments, want string }{
		{"get", `{"url":"` + server.URL + `/a"}`, `{"result":[200,"fetched /a"]}`},
		{"get", `{"url":"https://example.com/"}`, "denied"},
		{"environment", `{"name":"API_KEY"}`, `{"result":"secret"}`},
		{"environment", `{"name":"PATH"}`, `{"result":null}`},
		{"look", `{"path":"/data"}`, `{"result":["note"]}`},
		{"look", `{"path":"/data/../../etc"}`, "os error"},
		{"look", `{"path":"/etc"}`, "os error"},
	} {
		got, err := w.call(test.tool, test.arguments)
		if err != nil || !strings.Contains(strings.ToLower(got), test.want) {
			t.Errorf("%s %s: %q, %v, want %s", test.tool, test.arguments, got, err, test.want)
		}
	}
}

// TestRefusedComponents: what hako does not have, or what a manifest gets wrong, is said before consent.
func TestRefusedComponents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for file, text := range map[string]string{
		"export": "tools: [{name: say, export: ecko}]",
		"key":    "toolz: []",
	} {
		w.put(file+".wasm", component(t, "echo"))
		w.put(file+".yaml", []byte("name: "+file+"\nversion: 1.0.0\n"+text+"\n"))
	}
	w.put("1.wasm", component(t, "echo"))
	w.load()
	w.expect("export.wasm", host.Broken, "the component exports no function ecko")
	w.expect("key.wasm", host.Broken, "toolz")
	w.expect("1.wasm", host.Broken, "rename the file")
}

// A component uses its permissions through hako's own WIT packages.
func TestComponentPermissions(t *testing.T) {
	t.Parallel()
	if s := confine.Check(); !s.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands: "+s.Missing())
	}
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "host/wasm/component/testdata/permissions.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	const asks = "name: permissions\nversion: 1.0.0\ndescription: d\nlicense: Apache-2.0\n" +
		"tools: [{name: note, description: d, export: note}, {name: run, description: d, export: run}]\npermissions:\n" +
		"  sql: {reason: to keep notes, migrations: [CREATE TABLE notes (text TEXT NOT NULL)]}\n  exec: {reason: to look, programs: [sh, ls]}\n"
	wasm, err = wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte(asks)})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) { o.DataDir = t.TempDir() })
	w.put("permissions.wasm", wasm)
	w.load()
	w.approve("permissions.wasm", nil)
	w.load()
	for _, want := range []string{"1", "2"} {
		if got, err := w.call("note", `{"text":"a"}`); err != nil || !strings.Contains(got, want) {
			t.Errorf("note = %q, %v; want %s", got, err, want)
		}
	}
	if got, err := w.call("run", `{"line":"rm -r /"}`); err != nil || !strings.Contains(got, "not-granted") {
		t.Errorf("run = %q, %v", got, err)
	}
}
