package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
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

func FuzzSchema(f *testing.F) {
	f.Add(forecastSchema, `{"location": "Tokyo", "date": "today"}`)
	f.Add(forecastSchema, `{"shape": {"kind": "star"}, "either": 5, "tags": ["a", "a"], "nested": {"x y": []}}`)
	f.Add(`{"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#"}], "unevaluatedProperties": false}}}`, `{"x": {"y": 1}}`)
	f.Add(`{"type": "object", "patternProperties": {"^a": {"enum": [1, 1.0, "x", null, {}]}}, "if": {"minProperties": 2}, "then": false}`, `{"a": 1e2, "b": -0}`)
	f.Add(`{"type": "object", "dependentSchemas": {"a": {"contains": {"multipleOf": 0.1}}}, "propertyNames": {"format": "regex"}}`, `{"a": [0.3]}`)
	f.Add(`{"type": "object", "additionalProperties": {"items": {"properties": {"path": {}}}}}`, `{"x": [{"path": 0}, {"PATH": 0}]}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := manifest.CompileSchema([]byte(schema))
		if err != nil {
			return
		}
		err = s.Validate([]byte(value))
		asArguments := s.ValidateArguments([]byte(value))
		if err != nil && asArguments == nil {
			t.Fatalf("accepted as arguments: %v", err)
		}
		err = asArguments
		if err == nil && !json.Valid([]byte(value)) {
			t.Fatal("accepted what is not JSON")
		}
		if err != nil && (!utf8.ValidString(err.Error()) || strings.TrimSpace(err.Error()) == "" ||
			len(err.Error()) > 100_000) {
			t.Fatalf("the error is not fit to print: %q", err)
		}
	})
}
