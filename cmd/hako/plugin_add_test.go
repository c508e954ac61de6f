package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasmfile"
)

func TestPluginAdd(t *testing.T) {
	t.Parallel()
	wasm := probePlugin(t)
	digest := must(wasmfile.Read(wasm)).Digest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe.wasm":
			_, _ = w.Write(wasm)
		case "/moved":
			http.Redirect(w, r, "/probe.wasm", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://plugins.example/probe.wasm", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	fresh := func(t *testing.T) string {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nmaxPluginSize: 8MiB\n"))
		if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "here.wasm"), wasm)
		put(t, filepath.Join(dir, "text.wasm"), []byte("text"))
		put(t, filepath.Join(dir, "large.wasm"), make([]byte, 9<<20))
		return dir
	}
	for name, args := range map[string][]string{
		"a file":          {"here.wasm"},
		"an address":      {server.URL + "/probe.wasm?key=secret", "--digest", digest},
		"a redirect":      {server.URL + "/moved"},
		"digest in upper": {"here.wasm", "--digest", strings.ToUpper(digest)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fresh(t)
			invoke(t, dir, append([]string{"plugin", "add"}, args...)...).want(t, exitOK, "probe 1.0.0 is in", digest,
				"Next: hako plugin approve probe")
			if got := must(os.ReadFile(filepath.Join(dir, "plugins", "probe.wasm"))); !bytes.Equal(got, wasm) {
				t.Error("the file is another")
			}
			invoke(t, dir, "plugin", "list").want(t, exitOK, "pending")
			o := invoke(t, dir, "audit", "query", "--json")
			o.want(t, exitOK, "plugin.add", digest)
			if strings.Contains(o.stdout, "secret") {
				t.Errorf("the record holds the query: %s", o.stdout)
			}
			invoke(t, dir, append([]string{"plugin", "add"}, args...)...).want(t, exitUsage, "already exists",
				"--replace")
			invoke(t, dir, append([]string{"plugin", "add", "--replace"}, args...)...).want(t, exitOK)
		})
	}
	for name, test := range map[string]struct {
		from, want string
		flags      []string
	}{
		"another digest":  {server.URL + "/probe.wasm", "instead of sha256:00", []string{"--digest", "sha256:00"}},
		"no such file":    {"nothing.wasm", "there is no file nothing.wasm: give a file, an https address", nil},
		"no index":        {"weather", "no index that could list a plugin of that name: give a file, an https address", nil},
		"nothing there":   {server.URL + "/nothing?key=secret", "answers 404", nil},
		"not encrypted":   {"http://plugins.example/probe.wasm", "is not https", nil},
		"leads there":     {server.URL + "/away", "is not https", nil},
		"in a circle":     {server.URL + "/round", "redirects too many times", nil},
		"another scheme":  {"ftp://plugins.example/probe.wasm", "is not https", nil},
		"no plugin":       {"text.wasm", "not a Wasm module", nil},
		"too large":       {"large.wasm", "8", nil},
		"no file":         {"nothing.wasm", "nothing.wasm", nil},
		"no scheme":       {"ghcr.io/tools/weather:1", "write oci://ghcr.io/tools/weather:1", nil},
		"Docker's scheme": {"docker://ghcr.io/tools/weather:1", "write oci://ghcr.io/tools/weather:1", nil},
		"nobody answers":  {"http://127.0.0.1:1/?key=secret", "http://127.0.0.1:1/: ", nil},
		"no known answer": {server.URL + "/probe.wasm", "unknown flag", []string{"--sha256", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fresh(t)
			o := invoke(t, dir, append([]string{"plugin", "add", test.from}, test.flags...)...)
			o.want(t, exitUsage, test.want)
			if strings.Contains(o.stderr, "secret") {
				t.Errorf("the query is shown: %s", o.stderr)
			}
			if left := must(os.ReadDir(filepath.Join(dir, "plugins"))); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	invoke(t, t.TempDir(), "plugin", "add", "x.wasm").want(t, exitUsage, "there is no plugin folder")
}
