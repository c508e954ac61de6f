package manifest_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte(reviewed))
	for _, c := range badManifests {
		f.Add([]byte(c.yaml))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse(data)
		if err == nil {
			module, err := manifest.Read(notesModule)
			if err != nil {
				t.Fatal(err)
			}
			manifest.Check(module, m, nil)
			return
		}
		var problems *manifest.Error
		if !errors.As(err, &problems) || len(problems.Problems) == 0 {
			t.Fatalf("not a list of problems: %v", err)
		}
		if !utf8.ValidString(err.Error()) || len(err.Error()) > 100_000 {
			t.Fatalf("the error is not fit to print: %q", err)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(plugin([][]byte{imported("hako:core/1", "take", 0, 2)}, custom(abi.ManifestSection, minimal)))
	f.Add(wasm(section(2, imported("env", "table", 1, 0x70, 1, 2, 9), imported("env", "global", 3, 0x7F, 0))))
	f.Add([]byte("(module)"))
	if echo, err := os.ReadFile(fixture("echo")); err == nil {
		f.Add(echo)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Read(data)
		if err != nil {
			return
		}
		_, _ = m.ABI()
		_ = m.CheckImports(manifest.Permissions{})
		content := []byte("content")
		embedded, err := manifest.Embed(data, map[string][]byte{abi.ManifestSection: content})
		if err != nil {
			t.Fatalf("read but not embedded: %v", err)
		}
		if again, err := manifest.Read(embedded); err != nil || !bytes.Equal(again.Manifest, content) {
			t.Fatalf("embedded but not read: %v", err)
		}
	})
}
