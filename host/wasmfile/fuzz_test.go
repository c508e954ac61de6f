package wasmfile_test

import (
	"bytes"
	"testing"

	"github.com/hako-run/hako/dev/kit/wasmtest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func FuzzRead(f *testing.F) {
	f.Add(wasmtest.Plugin([][]byte{wasmtest.Imported("hako:core/1", "take", 0, 2)}, wasmtest.Custom(abi.ManifestSection, minimal)))
	f.Add(wasmtest.Module(wasmtest.Section(2, wasmtest.Imported("env", "table", 1, 0x70, 1, 2, 9), wasmtest.Imported("env", "global", 3, 0x7F, 0))))
	f.Add([]byte("(module)"))
	f.Add(wasmtest.Component(f, "echo"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wasmfile.Read(data)
		if err != nil {
			return
		}
		_, _ = m.ABI()
		_ = manifest.CheckImports(m, manifest.Permissions{})
		content := []byte("content")
		embedded, err := wasmfile.Embed(data, map[string][]byte{abi.ManifestSection: content})
		if err != nil {
			t.Fatalf("read but not embedded: %v", err)
		}
		if again, err := wasmfile.Read(embedded); err != nil || !bytes.Equal(again.Manifest, content) {
			t.Fatalf("embedded but not read: %v", err)
		}
	})
}
