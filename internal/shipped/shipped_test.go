package shipped

import (
	"bytes"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// TestPlugins: what is known of a plugin without decompressing it is what its bytes say.
func TestPlugins(t *testing.T) {
	t.Parallel()
	wasm, err := manifest.Embed([]byte("\x00asm\x01\x00\x00\x00"), map[string][]byte{
		abi.ManifestSection: []byte("name: a\nversion: 1.0.0\ndescription: A.\n" +
			"tools: [{name: a, description: A., inputSchema: {type: object}}]\n"), abi.RecordingsSection: []byte("{}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	invalid, err := manifest.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte("name: a\n")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Files("a", invalid); err == nil {
		t.Error("a plugin with an invalid manifest is part of the program")
	}
	packed, err := Files("a", wasm)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"in/README.md": {}}
	for name, data := range packed {
		files["in/"+name] = &fstest.MapFile{Data: data}
	}
	plugins, err := read(files, "in")
	if err != nil || len(plugins) != 1 || plugins[0].File != "a.wasm" {
		t.Fatalf("%+v, %v", plugins, err)
	}
	want, err := manifest.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	want.Recordings = nil
	if !reflect.DeepEqual(plugins[0].Module, want) {
		t.Errorf("module %+v, want %+v", plugins[0].Module, want)
	}
	if got, err := plugins[0].Wasm(); err != nil || !bytes.Equal(got, wasm) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	code := files["in/a.wasm.gz"]
	code.Data = code.Data[:len(code.Data)-1]
	if _, err := plugins[0].Wasm(); err == nil {
		t.Error("damaged bytes are returned")
	}
	files["in/a.json"].Data = []byte("{")
	if _, err := read(files, "in"); err == nil {
		t.Error("a damaged description is accepted")
	}
}
