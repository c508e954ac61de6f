package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/wasmfile"
)

const greeterManifest = `name: greeter
version: 1.0.0
description: Greets.
license: Apache-2.0
tools:
  - name: greet
    description: Greets.
    inputSchema: {type: object}
`

// tree is a repository with one plugin.
func tree(t *testing.T, manifest string) string {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "plugins/greeter/main.go"), "package main\n\nfunc main() {}\n")
	writeFile(t, filepath.Join(root, "plugins/greeter/recordings.json"), `{"version":1}`)
	writeFile(t, filepath.Join(root, "go.mod"), "module example.com/tree\n\ngo 1.26\n")
	writeFile(t, filepath.Join(root, "manifests/greeter.yaml"), manifest)
	return root
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	root := tree(t, greeterManifest)
	carried := filepath.Join(root, "cmd/hako/shipped")
	writeFile(t, filepath.Join(carried, "README.md"), "These are built.")
	writeFile(t, filepath.Join(carried, "removed.json"), "{}")
	var first, second bytes.Buffer
	if err := run(t.Context(), root, log.New(&first, "", 0)); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(filepath.Join(root, "dist/plugins/greeter.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if string(module.Manifest) != greeterManifest || string(module.Recordings) != `{"version":1}` {
		t.Errorf("embedded %q and %q", module.Manifest, module.Recordings)
	}
	plugins := shipped.MustRead(os.DirFS(root), "cmd/hako/shipped")
	if len(plugins) != 1 || plugins[0].Module.Digest != module.Digest {
		t.Fatalf("shipped %+v, want %s", plugins, module.Digest)
	}
	if code, err := plugins[0].Wasm(); err != nil || !bytes.Equal(code, wasm) {
		t.Errorf("shipped %d bytes, %v, want %d", len(code), err, len(wasm))
	}
	for _, file := range []string{"dist/plugins/greeter.wasm", "cmd/hako/shipped/greeter.dictionary.wasm.zst"} {
		if !strings.Contains(first.String(), filepath.Join(root, file)) {
			t.Errorf("the output does not name %s:\n%s", file, first.String())
		}
	}
	left, err := filepath.Glob(filepath.Join(carried, "*"))
	if want := []string{"README.md", "greeter.json", "greeter.dictionary.wasm.zst"}; err != nil || len(left) != len(want) {
		t.Errorf("%q in the program, %v, want %q", left, err, want)
	}
	if err := run(t.Context(), root, log.New(&second, "", 0)); err != nil || second.Len() > 0 {
		t.Errorf("a second run wrote again (%v):\n%s", err, second.String())
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		root string
		want []string
	}{
		"elsewhere": {t.TempDir(), []string{"root of the repository"}},
		"bad manifest": {tree(t, strings.Replace(greeterManifest, "version", "verison", 1)),
			[]string{"greeter.yaml", "2:1", `did you mean "version"`}},
		"another's name": {tree(t, strings.Replace(greeterManifest, "greeter", "other", 1)),
			[]string{`"other"`, `"greeter"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), test.root, log.Default())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}
