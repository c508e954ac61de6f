package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/hako-run/hako/host/manifest"
)

func compilePublished(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(manifest.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("published", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("published")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON decodes YAML the way that an editor does before it validates.
func asJSON(t *testing.T, text string) (any, error) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
}

// isTree reports whether a case is about JSON values at all, and not about how YAML writes them.
func isTree(name string) bool {
	return !slices.Contains([]string{"anchor", "merge key", "tag", "two documents", "not UTF-8", "syntax",
		"repeated key", "repeated key in a schema"}, name)
}

func TestPublishedSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	schema := compilePublished(t)
	accepts := func(t *testing.T, text string) bool {
		t.Helper()
		value, err := asJSON(t, text)
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value) == nil
	}
	for name, text := range goodManifests {
		t.Run(name, func(t *testing.T) {
			if _, err := manifest.Parse([]byte(text)); err != nil {
				t.Errorf("Parse: %v", err)
			}
			if value, _ := asJSON(t, text); schema.Validate(value) != nil {
				t.Errorf("the published schema: %v", schema.Validate(value))
			}
		})
	}
	for _, c := range badManifests {
		if !isTree(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if got, want := accepts(t, c.yaml), strings.HasSuffix(c.name, "*"); got != want {
				t.Errorf("the published schema accepts it: %v, want %v", got, want)
			}
		})
	}
}

// goodManifests are accepted by Parse and by the published schema.
var goodManifests = map[string]string{
	"minimal":    minimal,
	"everything": weather,
	"any host":   minimal + "permissions: {http: [{name: a, url: 'https://*', reason: r}]}\n",
	"subdomains, port": minimal +
		"permissions: {http: [{name: a, url: 'https://*.a.example:8443/v1', reason: r}]}\n",
	"IPv6": minimal + "permissions: {http: [{name: a, url: 'http://[::1]:80/', reason: r}]}\n",
	"credential, here": minimal +
		"permissions: {http: [{name: a, url: 'http://localhost:1', credential: c, reason: r}]}\n",
	"only a resource": "name: a\nversion: 0.0.1\nresources: [{uri: 'notes://a', name: n}]\n",
	"retired": minimal +
		"retired: [{tool: old, instead: use new}, {prompt: old, instead: i}, {resource: 'a://b', instead: i}]\n",
	"empty lists":         minimal + "prompts: []\npermissions: {http: [], files: []}\nconfig: {}\n",
	"list as a default":   minimal + "config: {a: {type: array, default: [x, y]}}\n",
	"number as a default": minimal + "config: {a: {type: number, default: 0.5, enum: [0.5, 1]}}\n",
	"schema with $defs": strings.Replace(minimal, "{type: object}",
		"{type: object, properties: {a: {$ref: '#/$defs/a'}}, $defs: {a: {type: string}}}", 1),
	"schema as JSON":       strings.Replace(minimal, "{type: object}", `'{"type":"object"}'`, 1),
	"programs":             minimal + "permissions: {exec: {programs: [git, g++, python3.11], reason: r}}\n",
	"any program":          minimal + "permissions: {exec: {programs: ['*'], reason: r}}\n",
	"another size of unit": minimal + "limits: {memory: 1048576B, time: 1m30s}\n",
}

// TestPublishedSchemaHasTheParsersKeys compares the keys of every object: those the parser names when it meets an
// unknown one, and those of the published schema.
func TestPublishedSchemaHasTheParsersKeys(t *testing.T) {
	t.Parallel()
	var published map[string]any
	if err := json.Unmarshal([]byte(manifest.JSONSchema()), &published); err != nil {
		t.Fatal(err)
	}
	for at, text := range map[string]string{
		"":                                  "%s: 1",
		"$defs/tool":                        "tools: [{%s: 1}]",
		"$defs/tool/properties/annotations": "tools: [{annotations: {%s: 1}}]",
		"$defs/tool/properties/replaces":    "tools: [{replaces: {%s: 1}}]",
		"$defs/tool/properties/icons/items": "tools: [{icons: [{%s: 1}]}]",
		"$defs/resource":                    "resources: [{%s: 1}]",
		"$defs/resourceTemplate":            "resourceTemplates: [{%s: 1}]",
		"$defs/prompt":                      "prompts: [{%s: 1}]",
		"$defs/prompt/properties/arguments/items": "prompts: [{arguments: [{%s: 1}]}]",
		"$defs/retired":          "retired: [{%s: 1}]",
		"properties/permissions": "permissions: {%s: 1}",
		"$defs/httpPermission":   "permissions: {http: [{%s: 1}]}",
		"$defs/filePermission":   "permissions: {files: [{%s: 1}]}",
		"$defs/sqlPermission":    "permissions: {sql: {%s: 1}}",
		"$defs/execPermission":   "permissions: {exec: {%s: 1}}",
		"$defs/toolsPermission":  "permissions: {tools: {%s: 1}}",
		"$defs/configKey":        "config: {a: {%s: 1}}",
		"$defs/limits":           "limits: {%s: 1}",
	} {
		t.Run(at, func(t *testing.T) {
			_, err := manifest.Parse(fmt.Appendf(nil, text, "zzzzzzzzzz"))
			_, list, found := strings.Cut(fmt.Sprint(err), `unknown key "zzzzzzzzzz": known are `)
			if !found {
				t.Fatalf("got %v", err)
			}
			parser := strings.Split(strings.Split(list, "\n")[0], ", ")
			object := published
			for _, step := range strings.FieldsFunc(at, func(r rune) bool { return r == '/' }) {
				object = object[step].(map[string]any)
			}
			schema := slices.Sorted(maps.Keys(object["properties"].(map[string]any)))
			if !slices.Equal(parser, schema) {
				t.Errorf("the parser knows    %v\nthe schema declares %v", parser, schema)
			}
			if object["additionalProperties"] != false {
				t.Error("the schema allows other keys")
			}
		})
	}
	if n := strings.Count(manifest.JSONSchema(), `"additionalProperties": false`); n != 18 {
		t.Errorf("the schema has %d closed objects; this test knows 18", n)
	}
}

// TestPublishedSchemaHasTheLimitsOfTools checks that the published schema and Parse refuse the same limits of a tool.
func TestPublishedSchemaHasTheLimitsOfTools(t *testing.T) {
	t.Parallel()
	schema := compilePublished(t)
	refused := 0
	for key, value := range manifest.DefaultLimits.Texts() {
		text := fmt.Sprintf("%s    limits: {%s: %s}\n", minimal, key, value)
		parsed, err := asJSON(t, text)
		if err != nil {
			t.Fatal(err)
		}
		bySchema := schema.Validate(parsed)
		_, byParser := manifest.Parse([]byte(text))
		if (bySchema == nil) != (byParser == nil) {
			t.Errorf("%s: Parse returns %v, the published schema %v", key, byParser, bySchema)
		}
		if byParser != nil {
			refused++
		}
	}
	if refused != 7 {
		t.Errorf("%d limits are refused for a tool, want 7", refused)
	}
}
