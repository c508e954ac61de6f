package manifest_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// TestDocument checks that the examples of docs/manifest.md are valid, and that its tables name every key of the
// published schema.
func TestDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(data)
	blocks := strings.Split(document, "```yaml\n")[1:]
	if len(blocks) != 4 {
		t.Fatalf("the document has %d examples; this test knows 4", len(blocks))
	}
	examples := ""
	for i, block := range blocks {
		example, _, _ := strings.Cut(block, "```")
		examples += example
		parse := manifest.Parse
		switch {
		case strings.Contains(example, " argument: text"):
			parse = parseExtism
		case strings.Contains(example, " export: "):
			parse = manifest.ParseComponent
		}
		m, err := parse([]byte(example))
		if err != nil {
			t.Errorf("example %d: %v", i, err)
			continue
		}
		if _, err := m.Configure(map[string]any{"author": "Aki"}); err != nil && len(m.Config) > 0 {
			t.Errorf("example %d: %v", i, err)
		}
	}
	var schema any
	if err := json.Unmarshal([]byte(manifest.JSONSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	example, _, _ := strings.Cut(blocks[0], "```")
	prose := strings.Replace(document, example, "", 1)
	for _, key := range propertyNames(schema) {
		if !strings.Contains(prose, "`"+key+"`") {
			t.Errorf("the tables do not name %s", key)
		}
		if !strings.Contains(examples, key+":") {
			t.Errorf("the examples do not have %s", key)
		}
	}
}

// parseExtism parses the manifest of a plugin made for Extism.
func parseExtism(text []byte) (*manifest.Manifest, error) {
	m, err := wasmfile.Read(extism("extism:host/env", "f", string(text)))
	if err != nil {
		return nil, err
	}
	return manifest.ParseModule(m)
}

// propertyNames returns the names under every "properties" of a schema.
func propertyNames(schema any) []string {
	var names []string
	switch schema := schema.(type) {
	case []any:
		for _, item := range schema {
			names = append(names, propertyNames(item)...)
		}
	case map[string]any:
		if properties, ok := schema["properties"].(map[string]any); ok {
			names = slices.Collect(maps.Keys(properties))
		}
		for _, key := range slices.Sorted(maps.Keys(schema)) {
			names = append(names, propertyNames(schema[key])...)
		}
	}
	return names
}
