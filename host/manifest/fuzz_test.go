package manifest_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
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
			module, err := wasmfile.Read(notesModule)
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
