package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := wasmtest.Plugin(nil)
	packed, err := wasmfile.Embed(plain, map[string][]byte{abi.ManifestSection: []byte(minimal)})
	if err != nil {
		t.Fatal(err)
	}
	write("beside.yaml", []byte(minimal))
	write("both.yaml", []byte(minimal))
	write("differ.yaml", []byte("name: other\n"))
	write("huge.yaml", make([]byte, manifest.MaxBytes+1))
	for _, c := range []struct {
		name  string
		path  string
		limit int64
		want  []byte
		err   string
	}{
		{"packed", write("packed.wasm", packed), 0, packed, ""},
		{"beside", write("beside.wasm", plain), 0, packed, ""},
		{"both", write("both.wasm", packed), 0, packed, ""},
		{"both differ", write("differ.wasm", packed), 0, nil, "contains a manifest that differs from the one beside it"},
		{"neither", write("neither.wasm", plain), 0, plain, ""},
		{"at the limit", write("limit.wasm", plain), int64(len(plain)), plain, ""},
		{"beyond the limit", write("beyond.wasm", plain), int64(len(plain)) - 1, nil, "bytes allowed: raise the limit"},
		{"huge manifest", write("huge.wasm", plain), 0, nil, "huge.yaml has more than the 1048576 bytes allowed"},
		{"missing", filepath.Join(dir, "missing.wasm"), 0, nil, "no such file"},
		{"folder", dir, 0, nil, "is not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := manifest.ReadFile(c.path, c.limit)
			if !bytes.Equal(got, c.want) {
				t.Errorf("got %d bytes, want %d", len(got), len(c.want))
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}
