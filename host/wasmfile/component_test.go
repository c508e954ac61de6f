package wasmfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func TestReadComponent(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ exports, imported string }{
		"echo":    {"echo echo-bytes fail", "wasi:cli/stdout@0.2.6"},
		"counter": {"add crash", "wasi:cli/environment@0.2.6"},
		"files":   {"read write names", "wasi:filesystem/preopens@0.2.6"},
		"fetch":   {"get environment", "wasi:http/outgoing-handler@0.2.12"},
		"shapes":  {"sum hako:shapes/draw@1.2.3#move-shape", "wasi:io/streams@0.2.6"},
	} {
		m, err := wasmfile.Read(wasmtest.Component(t, name))
		if err != nil {
			t.Fatal(err)
		}
		var exports []string
		for _, e := range m.Exports {
			exports = append(exports, e.Name)
		}
		if !strings.HasPrefix(strings.Join(exports, " "), want.exports) {
			t.Errorf("%s exports %q, want %s", name, exports, want.exports)
		}
		if !slices.ContainsFunc(m.Imports, func(i wasmfile.Import) bool { return i.Module == want.imported }) {
			t.Errorf("%s imports %v, want %s", name, m.Imports, want.imported)
		}
		if slices.ContainsFunc(m.Imports, func(i wasmfile.Import) bool { return strings.HasPrefix(i.Module, "hako:") }) {
			t.Errorf("%s imports an interface that has types only: %v", name, m.Imports)
		}
		if err := m.CheckABI(); err != nil || m.IsExtism() {
			t.Errorf("%s: %v, extism %t", name, err, m.IsExtism())
		}
		if err := manifest.CheckImports(m, manifest.Permissions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBrokenComponent(t *testing.T) {
	t.Parallel()
	wasm := wasmtest.Component(t, "echo")
	for problem, data := range map[string][]byte{
		"":             wasm[:len(wasm)/2],
		"occurs twice": slices.Concat(wasm, wasmtest.Custom(abi.ManifestSection, "a"), wasmtest.Custom(abi.ManifestSection, "b")),
	} {
		_, err := wasmfile.Read(data)
		if text := fmt.Sprint(err); !strings.HasPrefix(text, "malformed component: ") || !strings.Contains(text, problem) {
			t.Errorf("%v, want %s", err, problem)
		}
	}
}
