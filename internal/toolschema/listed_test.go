package toolschema

import (
	"encoding/json"
	"regexp"
	"strings"
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
		{"names that providers refuse, at every depth",
			`{"type":"object","properties":{"$top":{"type":"integer"},"filter[name]":{"type":"array","items":{"type":"object","properties":{"場所":{"title":"where"}},"required":["場所"]}}},"required":["$top"],"dependentRequired":{"$top":["filter[name]"]}}`,
			`{"dependentRequired":{"_top":["filter_name_"]},"properties":{"_top":{"title":"$top","type":"integer"},"filter_name_":{"items":{"properties":{"__":{"title":"where"}},"required":["__"],"type":"object"},"title":"filter[name]","type":"array"}},"required":["_top"],"type":"object"}`},
		{"names that would be the same",
			`{"type":"object","properties":{"a b":{},"a$b":{},"$top":{},"_top":{}}}`,
			`{"properties":{"_top":{},"_top_81bf98e4094e":{"title":"$top"},"a_b_c7979da2f1d7":{"title":"a$b"},"a_b_c8687a08aa5d":{"title":"a b"}},"type":"object"}`},
		{"a reference to a renamed property",
			`{"type":"object","properties":{"$a/b":{"type":"string"},"c":{"$ref":"#/properties/$a~1b"}}}`,
			`{"properties":{"_a_b":{"title":"$a/b","type":"string"},"c":{"$ref":"#/properties/_a_b"}},"type":"object"}`},
		{"properties that are called as keywords are", `{"type":"object","properties":{"properties":{"type":"object","default":{"$x":1}},"required":{}}}`, ""},
		{"arrays without items",
			`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"type":"array","items":{"type":"array","maxItems":2}}}}`,
			`{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]},"c":{"items":{"items":{},"maxItems":2,"type":"array"},"type":"array"}},"type":"object"}`},
		{"a circle", `{"allOf":[{"$ref":"#"}]}`, `{"properties":{},"type":"object"}`},
	} {
		want := test.want
		if want == "" {
			want = test.schema
		}
		got := string(Listed(json.RawMessage(test.schema)))
		if got != want {
			t.Errorf("%s: %s\nwant %s", test.name, got, want)
		}
		if again := string(Listed(json.RawMessage(got))); again != got {
			t.Errorf("%s: listed again it is %s", test.name, again)
		}
	}
}

// TestListedNames: all names have the form that every provider accepts.
func TestListedNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	whole := json.RawMessage(`{"type":"object","properties":{"` + long + `":{},"` + long + `y":{"properties":{"":{}}},"a b":{},"a$b":{}}}`)
	rule := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	all := map[string]bool{}
	Each(decoded(Listed(whole)), 0, func(schema map[string]any) {
		for name := range elementsByName(schema["properties"]) {
			if all[name] = true; !rule.MatchString(name) {
				t.Errorf("%q", name)
			}
		}
	})
	if len(all) != 5 {
		t.Errorf("%d names: %v", len(all), all)
	}
	part := ListedAs(whole, json.RawMessage(`{"type":"object","properties":{"a b":{}}}`))
	for name := range elementsByName(decoded(part)["properties"]) {
		if !all[name] {
			t.Errorf("as a part of the schema, a property is called %s", name)
		}
	}
}
