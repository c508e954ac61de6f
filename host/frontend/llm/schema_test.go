package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// dialects are the dialects of the providers.
var dialects = map[string]dialect{Anthropic: new(messagesAPI).dialect(), OpenAI: new(responsesAPI).dialect(),
	OpenAICompatible: new(chatAPI).dialect()}

func TestAdapt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, schema, want string
	}{
		{"nothing", ``, `{"properties":{},"type":"object"}`},
		{"null", `null`, `{"properties":{},"type":"object"}`},
		{"true", `true`, `{"properties":{},"type":"object"}`},
		{"plain", `{"type":"object","properties":{"a":{"type":"string","format":"date"}},"required":["a"],"additionalProperties":false}`,
			`{"additionalProperties":false,"properties":{"a":{"format":"date","type":"string"}},"required":["a"],"type":"object"}`},
		{"numbers as they are", `{"properties":{"a":{"maximum":1e400,"const":12345678901234567890}}}`,
			`{"properties":{"a":{"const":12345678901234567890,"maximum":1e400}},"type":"object"}`},
		{"where it is from", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://x.example/a","$comment":"c","type":"object"}`,
			`{"properties":{},"type":"object"}`},
		{"alternatives", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string"},"k":{"const":1}},"required":["a","k"]},{"properties":{"b":{"type":"string"},"k":{"const":2}},"required":["b","k"]}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"},"k":{"anyOf":[{"const":1},{"const":2}]}},"required":["k"],"type":"object"}`},
		{"either is required",
			`{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"properties":{"a":{},"b":{}},"type":"object"}`},
		{"all of them", `{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{"type":"null"}},"required":["b"]}],"$defs":{"a":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			`{"$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}},"properties":{"a":{"type":"string"},"b":{"type":"null"}},"required":["a","b"],"type":"object"}`},
		{"a reference at the top",
			`{"$ref":"#/definitions/x~1y","definitions":{"x/y":{"type":"object","properties":{"a":{"$ref":"#/definitions/x~1y"}}}}}`,
			`{"definitions":{"x/y":{"properties":{"a":{"$ref":"#/definitions/x~1y"}},"type":"object"}},"properties":{"a":{"$ref":"#/definitions/x~1y"}},"type":"object"}`},
		{"alternatives within", `{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`,
			`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"type":"object"}`},
		{"an object or null", `{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}`,
			`{"properties":{"a":{"type":["string","null"]}},"type":"object"}`},
		{"an array of anything", `{"properties":{"a":{"type":"array"}}}`,
			`{"properties":{"a":{"items":{},"type":"array"}},"type":"object"}`},
		{"a tuple", `{"properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`,
			`{"properties":{"a":{"items":false,"prefixItems":[{"type":"string"}],"type":"array"}},"type":"object"}`},
		{"bounds of draft 4",
			`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true,"maximum":3,"exclusiveMaximum":false}}}`,
			`{"properties":{"a":{"exclusiveMinimum":1,"maximum":3}},"type":"object"}`},
		{"what leads nowhere",
			`{"properties":{"a":{"$ref":"#/$defs/missing"},"b":{"$ref":"#anchor"},"c":{"$ref":"#/properties/a/0"}}}`,
			`{"properties":{"a":{},"b":{},"c":{}},"type":"object"}`},
		{"of the wrong kind",
			`{"properties":{"a":{"type":"file","enum":[],"required":true,"properties":[],"anyOf":[],"items":"x"},"b":7},"required":"a"}`,
			`{"properties":{"a":{},"b":{}},"type":"object"}`},
		{"a reference to what goes",
			`{"type":"object","allOf":[{"properties":{"a":{"$ref":"#/allOf/0/properties/b"},"b":{"type":"string"}}}]}`,
			`{"properties":{"a":{},"b":{"type":"string"}},"type":"object"}`},
		{"a circle at the top", `{"$ref":"#"}`, `{"properties":{},"type":"object"}`},
		{"conditions at the top",
			`{"properties":{"a":{}},"if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]},"enum":[{}]}`,
			`{"properties":{"a":{}},"type":"object"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for provider, dialect := range dialects {
				p, err := adapt(json.RawMessage(test.schema), dialect)
				if err != nil {
					t.Fatal(err)
				}
				if got := text(t, p.schema); got != test.want {
					t.Errorf("%s: %s\nwant %s", provider, got, test.want)
				}
			}
		})
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAdaptErrors(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"not an object":       `{"type":"string"}`,
		"no alternative is":   `{"anyOf":[{"type":"string"},{"type":"array"}]}`,
		"not JSON":            `{"type":`,
		"a list":              `[]`,
		"false":               `false`,
		"another document":    `{"properties":{"a":{"$ref":"https://x.example/schema.json"}}}`,
		"nested too deep":     strings.Repeat(`{"properties":{"a":`, 70) + `{}` + strings.Repeat(`}}`, 70),
		"longer than allowed": `{"description":"` + strings.Repeat("x", maxSchema) + `"}`,
	} {
		for provider, dialect := range dialects {
			if p, err := adapt(json.RawMessage(schema), dialect); err == nil {
				t.Errorf("%s, %s: %s", provider, name, text(t, p.schema))
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"properties":{"a":{"pattern":"^a+$"},"b":{"pattern":"b+"}}}`)
	for provider, dialect := range dialects {
		p, err := adapt(schema, dialect)
		if err != nil {
			t.Fatal(err)
		}
		if kept := strings.Count(text(t, p.schema), "pattern"); kept != map[bool]int{true: 2, false: 1}[dialect.patterns] {
			t.Errorf("%s: %s", provider, text(t, p.schema))
		}
	}
}

// TestManyAlternatives checks that flattening alternatives cannot make a schema grow out of proportion.
func TestManyAlternatives(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 40 {
		defs = append(
			defs, fmt.Sprintf(
				`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"},{"properties":{"p":{"const":%d}}}]}`, i,
				i+1, i+2,
				i))
	}
	schema := `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d40":{},"d41":{}}}`
	p, err := adapt(json.RawMessage(schema), dialects[Anthropic])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(text(t, p.schema)); n > 2*len(schema) {
		t.Errorf("%d bytes became %d", len(schema), n)
	}
}

func FuzzAdapt(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"array","items":[{},true]}},"oneOf":[{"required":["a"]},{"$ref":"#"}]}`,
		`{"allOf":[{"$ref":"#/allOf"},{"$ref":"#/x/0"}],"x":[{"required":[1]}],"required":[{}]}`,
		`{"$ref":"#/x","x":{"required":[1,"a"],"allOf":[7,{}],"anyOf":{"a":1},"properties":{"a b":{}}}}`,
		`{"properties":{"a.":{},"a_":{},"a-":{},"場所":{},"日付":{}},"required":["場所"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		for provider, dialect := range dialects {
			p, err := adapt(schema, dialect)
			if err != nil {
				continue
			}
			checkAdapted(t, provider, p)
		}
	})
}

// checkAdapted checks the rules that providers have for schemas.
func checkAdapted(t *testing.T, provider string, p *parameters) {
	t.Helper()
	out := text(t, p.schema)
	var schema map[string]any
	if err := json.Unmarshal([]byte(out), &schema); err != nil &&
		!strings.Contains(err.Error(), "cannot unmarshal number") {
		t.Fatal(err)
	}
	if schema["type"] != "object" {
		t.Errorf("%s: %s", provider, out)
	}
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "enum", "not", "oneOf"} {
		if schema[keyword] != nil {
			t.Errorf("%s: %s at the top of %s", provider, keyword, out)
		}
	}
	if _, ok := schema["properties"].(map[string]any); !ok {
		t.Errorf("%s: %s", provider, out)
	}
	again, err := adapt(json.RawMessage(out), dialects[provider])
	if err == nil && text(t, again.schema) != out {
		t.Errorf("%s: %s\nbecomes %s", provider, out, text(t, again.schema))
	}
}
