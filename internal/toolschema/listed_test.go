package toolschema

import (
	"encoding/json"
	"testing"
)

func TestListed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, want string }{
		{"as it is", `{"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}]}, "a": {}}}`, ""},
		{"not an object", `[]`, ""},
		{"of no object", `{"anyOf":[{"type":"string"}]}`, ""},
		{"either is required",
			`{"type":"object","properties":{"a":{"maximum":1e400},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false}`,
			`{"additionalProperties":false,"properties":{"a":{"maximum":1e400},"b":{}},"type":"object"}`},
		{"one of them",
			`{"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"]}]}`,
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"b":{}},"required":["a"],"type":"object"}`},
		{"all of them",
			`{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{}},"required":["b"]}],"$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/c"}}},"c":{}}}`,
			`{"$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/c"}}},"c":{}},"properties":{"a":{"$ref":"#/$defs/c"},"b":{}},"required":["b"],"type":"object"}`},
		{"a reference into what goes",
			`{"type":"object","allOf":[{"properties":{"a":{"$ref":"#/allOf/0/properties/b"},"b":{}}}]}`,
			`{"properties":{"a":{},"b":{}},"type":"object"}`},
		{"a circle", `{"allOf":[{"$ref":"#"}]}`, `{"properties":{},"type":"object"}`},
	} {
		want := test.want
		if want == "" {
			want = test.schema
		}
		if got := string(Listed(json.RawMessage(test.schema))); got != want {
			t.Errorf("%s: %s\nwant %s", test.name, got, want)
		}
	}
}
