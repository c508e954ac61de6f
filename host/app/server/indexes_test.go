package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestIndexes: plugins come from the hosts and registries of the configured indexes, and from nowhere else inside.
func TestIndexes(t *testing.T) {
	t.Parallel()
	wasm, err := wasmfile.Embed([]byte("\x00asm\x01\x00\x00\x00"), map[string][]byte{abi.ManifestSection: []byte(`
name: probe
version: 1.0.0
description: {en: A probe, ja: プローブ}
license: MIT
tools: [{name: probe, description: {en: x, ja: x}, inputSchema: {type: object}}]
`)})
	if err != nil {
		t.Fatal(err)
	}
	at, other := registrytest.Start(t), registrytest.Start(t)
	client, err := registry.New(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for _, r := range []*registrytest.Registry{at, other} {
		reference, err := registry.ParseReference(r.Reference("tools/probe", "1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Push(t.Context(), reference, &registry.Artifact{Wasm: wasm}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(references map[string]string) string {
		var b strings.Builder
		b.WriteString("plugins:\n")
		for name, reference := range references {
			fmt.Fprintf(&b, "- {name: %s, reference: %q}\n", name, reference)
		}
		return b.String()
	}
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wasm) }))
	t.Cleanup(inside.Close)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/files/probe.wasm":
			_, _ = w.Write(wasm)
		case "/away.wasm":
			http.Redirect(w, r, inside.URL, http.StatusFound)
		default:
			_, _ = w.Write([]byte(list(map[string]string{"beside": "files/probe.wasm", "away": "away.wasm",
				"private": "https://10.0.0.1/probe.wasm", "metadata": "https://169.254.169.254/latest",
				"same": at.Reference("tools/probe", "1"), "elsewhere": other.Reference("tools/probe", "1")})))
		}
	}))
	t.Cleanup(web.Close)
	content := at.PutBlob(t, "tools/index", "application/yaml", []byte(list(map[string]string{"listed": at.Reference("tools/probe", "1")})))
	at.PutImage(t, "tools/index", "1", at.PutBlob(t, "tools/index", "application/vnd.oci.empty.v1+json", []byte("{}")), content)

	dir := t.TempDir()
	for name, text := range map[string]string{
		"hako.yaml": fmt.Sprintf("plugins: [plugins]\ncache: cache\nindex: {plugins: [%q, %q, index.yaml]}\n", web.URL+"/index.yaml",
			at.Reference("tools/index", "1")),
		"index.yaml": list(map[string]string{"file": "probe.wasm"}), "probe.wasm": string(wasm), "plugins/.keep": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Source{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	x := &pluginIndexes{config: func() *config.Config { return c }}
	plugins, sources := x.Search(t.Context(), "", nil)
	if len(plugins) != 8 || len(sources) != 3 {
		t.Fatalf("%+v %+v", plugins, sources)
	}
	for _, test := range []struct{ index, name, from, problem string }{
		{web.URL + "/index.yaml", "beside", web.URL + "/files/probe.wasm", ""},
		{web.URL + "/index.yaml", "same", at.Reference("tools/probe", "1") + "@sha256:", ""},
		{at.Reference("tools/index", "1"), "listed", at.Reference("tools/probe", "1") + "@sha256:", ""},
		{filepath.Join(dir, "index.yaml"), "file", "file", ""},
		{web.URL + "/index.yaml", "away", "", "is not https"},
		{web.URL + "/index.yaml", "private", "", "only public addresses"},
		{web.URL + "/index.yaml", "metadata", "", "only public addresses"},
		{web.URL + "/index.yaml", "elsewhere", "", "loopback address"},
		{web.URL + "/index.yaml", "listed", "", "has no plugin"},
		{inside.URL, "beside", "", "is not an index in the configuration"},
	} {
		p, err := x.Read(t.Context(), test.index, test.name)
		switch {
		case test.problem == "" && (err != nil || !strings.HasPrefix(p.From, test.from) || p.Size != len(wasm) || p.Exists):
			t.Errorf("%s: %+v, %v", test.name, p, err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %+v, %v, want %q", test.name, p, err, test.problem)
		}
	}
}
