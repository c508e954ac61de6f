package shipped

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestPlugins: what is known of a plugin without decompressing it is what its bytes say. What two plugins share is in the
// program once.
func TestPlugins(t *testing.T) {
	t.Parallel()
	wasm, err := wasmfile.Embed([]byte("\x00asm\x01\x00\x00\x00"), map[string][]byte{
		abi.ManifestSection: []byte("name: a\nversion: 1.0.0\ndescription: A.\n" +
			"tools: [{name: a, description: A., inputSchema: {type: object}}]\n"), abi.RecordingsSection: []byte("{}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	invalid, err := wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte("name: a\n")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Files(map[string][]byte{"a": wasm, "b": invalid}); err == nil || !strings.Contains(err.Error(), "plugin b") {
		t.Errorf("a plugin with an invalid manifest is part of the program: %v", err)
	}
	runtime := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{}).Read(runtime)
	if wasm, err = wasmfile.Embed(wasm, map[string][]byte{"runtime": runtime}); err != nil {
		t.Fatal(err)
	}
	second, err := wasmfile.Embed(wasm, map[string][]byte{"more": []byte("code")})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Files(map[string][]byte{"a": wasm, "a-b": second})
	if err != nil {
		t.Fatal(err)
	}
	if size := len(packed["a.wasm.zst"]); size == 0 || size > len(runtime)/10 {
		t.Errorf("the first plugin has %d bytes, most of which are those of the second", size)
	}
	files := fstest.MapFS{"in/README.md": {}}
	for name, data := range packed {
		files["in/"+name] = &fstest.MapFile{Data: data}
	}
	plugins, err := read(files, "in")
	if err != nil || len(plugins) != 2 || plugins[0].File != "a.wasm" || plugins[1].File != "a-b.wasm" {
		t.Fatalf("%+v, %v", plugins, err)
	}
	want, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	want.Recordings = nil
	if !reflect.DeepEqual(plugins[0].Module, want) {
		t.Errorf("module %+v, want %+v", plugins[0].Module, want)
	}
	for i, want := range [][]byte{wasm, second} {
		if got, err := plugins[i].Wasm(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", plugins[i].File, len(got), err)
		}
	}
	code := files["in/a-b.dictionary.wasm.zst"]
	code.Data = code.Data[:len(code.Data)-1]
	for _, plugin := range plugins {
		if _, err := plugin.Wasm(); err == nil || !strings.Contains(err.Error(), "in/a-b.dictionary.wasm.zst") {
			t.Errorf("%s: damaged bytes are returned: %v", plugin.File, err)
		}
	}
	files["in/a.json"].Data = []byte("{")
	if _, err := read(files, "in"); err == nil {
		t.Error("a damaged description is accepted")
	}
}
