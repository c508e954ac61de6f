package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/schema"
)

const forecastSchema = `{
	"type": "object",
	"properties": {
		"location": {"type": "string", "minLength": 1, "maxLength": 20},
		"date": {"type": "string", "enum": ["today", "tomorrow", "week"]},
		"days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 8},
		"ratio": {"type": "number", "multipleOf": 0.25},
		"id": {"type": "string", "pattern": "^[a-z]+$"},
		"tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
		"shape": {"oneOf": [
			{"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
			{"type": "object", "properties": {"kind": {"const": "box"}, "width": {"type": "number"}}, "required": ["kind", "width"]}
		]},
		"either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
		"nested": {"type": "object", "properties": {"a b": {"type": "boolean"}}, "minProperties": 1, "propertyNames": {"maxLength": 5}},
		"unit": {"not": {"const": "kelvin"}},
		"month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "description": "The month as YYYY-MM."},
		"start": {}, "end": {}
	},
	"required": ["location"],
	"dependentRequired": {"start": ["end"]},
	"additionalProperties": false
}`

func mustCompile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaValidate(t *testing.T) {
	t.Parallel()
	compiled := mustCompile(t, forecastSchema)
	for _, c := range []struct{ name, value, want string }{
		{"valid", `{"location": "Tokyo", "date": "today", "days": 1e0, "shape": {"kind": "box", "width": 1}, "either": null}`, ""},
		{"large integer", `{"location": "Tokyo", "ratio": 9007199254740993}`, ""},
		{"missing", `{}`, "location: is missing, a string"},
		{"unknown", `{"location": "x", "locaton": "y", "zzz": 1}`,
			"unknown property \"locaton\": did you mean \"location\"?\n" +
				"unknown property \"zzz\": known are date, days, either, end, id, location, month, nested, ratio, shape, start, tags, unit"},
		{"type", `{"location": 1, "days": 1.5}`,
			"days: must be an integer, not a number\nlocation: must be a string, not a number"},
		{"enum", `{"location": "x", "date": "tomorow"}`,
			`date: must be one of "today", "tomorrow", "week": did you mean "tomorrow"?`},
		{"length", `{"location": ""}`, "location: must have at least 1 characters, not 0"},
		{"too long", `{"location": "東京東京東京東京東京東京東京東京東京東京東"}`, "location: must have at most 20 characters, not 21"},
		{"bounds", `{"location": "x", "days": 0}`, "days: must be at least 1"},
		{"exclusive bound", `{"location": "x", "days": 8}`, "days: must be less than 8"},
		{"multiple", `{"location": "x", "ratio": 0.3}`, "ratio: must be a multiple of 0.25"},
		{"pattern", `{"location": "x", "id": "A"}`, "id: must match the pattern ^[a-z]+$"},
		{"pattern with a description", `{"location": "x", "month": "May"}`,
			"month: must match the pattern ^[0-9]{4}-[0-9]{2}$ (The month as YYYY-MM.)"},
		{"items", `{"location": "x", "tags": ["a", 2, "a"]}`,
			"tags: items 0 and 2 are equal; each may occur once\ntags[1]: must be a string, not a number"},
		{"too few items", `{"location": "x", "tags": []}`, "tags: must have at least 1 items, not 0"},
		{"alternative that was meant", `{"location": "x", "shape": {"kind": "box"}}`,
			"shape.width: is missing, a number"},
		{"no alternative", `{"location": "x", "shape": {"kind": "star", "radius": 1, "width": 1}}`,
			`shape: fits none of the alternatives: kind: must be "circle"; or kind: must be "box"`},
		{"alternatives of types", `{"location": "x", "either": 5}`,
			"either: fits none of the alternatives: must be a string, not a number; or must be null, not a number"},
		{"odd names", `{"location": "x", "nested": {"a b": 1}}`, `nested["a b"]: must be true or false, not a number`},
		{"property name", `{"location": "x", "nested": {"abcdefg": 1}}`,
			`nested: the property name "abcdefg" is not allowed`},
		{"property name in a place that is not clear",
			`{"location": "x", "nested": {"abcdefg": 1}, "shape": {"kind": "box", "width": 1, "abcdefg": {}}}`,
			`the property name "abcdefg" is not allowed`},
		{"no property", `{"location": "x", "nested": {}}`, "nested: must have at least 1 properties, not 0"},
		{"not", `{"location": "x", "unit": "kelvin"}`, "unit: is one of the values that are excluded"},
		{"dependent", `{"location": "x", "start": 1}`, `end: is missing: required together with "start"`},
		{"not an object", `[]`, "must be an object, not an array"},
		{"not JSON", `{"location": }`, "location: is not valid JSON: missing value"},
		{"cut off", `{"location": "x"`, "location: is not valid JSON: it ends early"},
		{"nothing", ``, "is not valid JSON: it ends early"},
		{"two values", `{"location": "x"} {}`, "is not valid JSON: unexpected data after the value"},
		{"repeated key", `{"location": "x", "nested": {"a": 1, "a": 2}}`, "nested.a: the key occurs twice"},
		{"not UTF-8", "{\"location\": \"\xff\"}", "location: is not valid JSON: invalid UTF-8"},
		{"huge exponent", `{"location": "x", "days": 1e999999999}`, "days: is a number beyond the range of a double"},
		{"tiny exponent", `{"location": "x", "ratio": 1E-999999999}`,
			"ratio: is a number beyond the range of a double"},
		{"long number", `{"location": "x", "ratio": 0.` + strings.Repeat("1", 200) + `}`,
			"ratio: is a number beyond the range of a double, or too long"},
		{"too deep", `{"location": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
			"the JSON nests deeper than 64 levels: make it flatter"},
		{"too many values", `{"location": [` + strings.Repeat("1,", 100_000) + `1]}`,
			"the JSON has more than 100,000 values, the most that are checked: send it in parts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := compiled.Validate([]byte(c.value))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestSchemaErrorsAreBounded also holds that errors do not repeat a value's contents.
func TestSchemaErrorsAreBounded(t *testing.T) {
	t.Parallel()
	compiled := mustCompile(t, `{"type": "object", "additionalProperties": {"type": "object", "additionalProperties": false}}`)
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `,"key%d": {"%s": "secret"}`, i, strings.Repeat("x", 1000))
	}
	err := compiled.Validate([]byte("{" + b.String()[1:] + "}"))
	var problems *schema.Error
	if !errors.As(err, &problems) || len(problems.Problems) != 20 || problems.Omitted == 0 {
		t.Fatalf("got %v", err)
	}
	if n := len(err.Error()); n > 20_000 {
		t.Errorf("the error has %d bytes", n)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error("the error repeats the value")
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	multiplied := func(levels int) string {
		s := `{"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": {`
		for i := range levels {
			s += fmt.Sprintf(`"a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]},`, i, i+1, i+1)
		}
		return s + fmt.Sprintf(`"a%d": {"type": "object"}}}`, levels)
	}
	for _, c := range []struct{ name, schema, want string }{
		{"missing", ``, "is missing"},
		{"not JSON", `{`, "ends early"},
		{"boolean", `true`, "must be an object"},
		{"no type", `{}`, `type: the root's type must be "object"`},
		{"types", `{"type": ["object", "null"]}`, `type: the root's type must be "object"`},
		{"keyword type", `{"type": "object", "properties": {"a": {"minLength": "1"}}}`,
			"properties.a.minLength: must be an integer, not a string"},
		{"negative length", `{"type": "object", "properties": {"a": {"minLength": -1}}}`,
			"properties.a.minLength: must be at least 0"},
		{"draft 7", `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`, "$schema: must be"},
		{"nested draft 7", `{"type": "object", "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}`, "properties.a.$schema: must be"},
		{"remote", `{"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}}`,
			"properties.a.$ref: must point into this schema"},
		{"file", `{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}`,
			"properties.a.$ref: must point into this schema"},
		{"relative", `{"type": "object", "properties": {"a": {"$ref": "other.json"}}}`,
			"properties.a.$ref: must point into this schema"},
		{"remote through data", `{"type": "object", "properties": {"a": {"$ref": "#/default"}}, "default": {"$ref": "https://example.com/schema.json"}}`, "is not a valid schema"},
		{"nowhere", `{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}`, "is not a valid schema"},
		{"dynamic", `{"type": "object", "properties": {"a": {"$dynamicRef": "#b"}}}`,
			"properties.a.$dynamicRef: is not supported"},
		{"nested id", `{"type": "object", "properties": {"a": {"$id": "b"}}}`,
			"properties.a.$id: is not supported below the root"},
		{"to itself", `{"type": "object", "allOf": [{"$ref": "#"}]}`, "leads back to itself"},
		{"in a circle", `{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}`, "leads back to itself"},
		{"pattern", `{"type": "object", "properties": {"a": {"pattern": "(?=a)"}}}`,
			"properties.a.pattern: is not a valid regex"},
		{"long pattern", `{"type": "object", "properties": {"a": {"pattern": "` + strings.Repeat("a", 1001) + `"}}}`,
			"at most 1000 bytes"},
		{"large pattern", `{"type": "object", "properties": {"a": {"pattern": "(a{30}){30}b{1000}"}}}`, "too large"},
		{"large patterns", `{"type": "object", "properties": {` + patterns(11) + `}}`, "too large together"},
		{"pattern of names", `{"type": "object", "patternProperties": {"(": {}}}`,
			`the property name "(" is not allowed`},
		{"required", `{"type": "object", "properties": {"date": {}}, "required": ["dat"]}`,
			`required[0]: unknown property "dat": did you mean "date"?`},
		{"huge bound", `{"type": "object", "properties": {"a": {"minimum": 1e999999999}}}`,
			"properties.a.minimum: is a number beyond"},
		{"multiplying", multiplied(40), "multiply to too many checks"},
		{"deep", `{"type": "object", "not": ` + strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 71),
			"nests deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.Compile([]byte(c.schema))
			var problems *schema.Error
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestCompileReadsNoFile holds that a schema cannot make the host read a file, not even by a reference that
// stands where data is expected.
func TestCompileReadsNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "schema.json"))
	if err := os.WriteFile(path, []byte(`{"type": "string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type": "object", "properties": {"a": {"$ref": "#/default"}}, "default": {"$ref": "file:///%s"}}`,
		strings.TrimPrefix(path, "/"))
	if _, err := schema.Compile([]byte(text)); err == nil ||
		!strings.Contains(err.Error(), "is outside of the schema") {
		t.Errorf("got %v", err)
	}
}

func TestCompileAccepts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"$schema":         `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`,
		"$schema with #":  `{"$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "object"}`,
		"$id":             `{"$id": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"$ref": "#"}}}`,
		"draft 7 as data": `{"type": "object", "properties": {"a": {"const": {"$schema": "http://json-schema.org/draft-07/schema#"}}}}`,
		"a property $ref": `{"type": "object", "properties": {"$ref": {"type": "string"}}}`,
		"tree":            `{"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}`,
		"unknown keyword": `{"type": "object", "x-order": 1}`,
		"anchor":          `{"type": "object", "properties": {"a": {"$ref": "#b"}}, "$defs": {"c": {"$anchor": "b"}}}`,
		"many of each": `{"type": "object", "properties": {"a": {"enum": [` + strings.Repeat(`"x", `, 1800) +
			`"y"]}}}`,
		"format asserts nothing": `{"type": "object", "properties": {"a": {"format": "date"}}}`,
		"large patterns":         `{"type": "object", "properties": {` + patterns(10) + `, "again": {"pattern": "(a{30}){30}"}}}`,
	} {
		if s, err := schema.Compile([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := s.Validate([]byte(`{}`)); err != nil {
			t.Errorf("%s: {}: %v", name, err)
		}
	}
}

// TestSchemaWork holds that recursive schemas in common use can check values of a useful size, and that those that
// multiply at each level are refused before they are evaluated: unbounded, the deep cases here would take years.
func TestSchemaWork(t *testing.T) {
	t.Parallel()
	const (
		tree    = `{"type": "object", "properties": {"next": {"$ref": "#"}, "list": {"type": "array", "items": {"$ref": "#"}}}}`
		query   = `{"type": "object", "properties": {"and": {"$ref": "#/$defs/l"}, "or": {"$ref": "#/$defs/l"}, "not": {"$ref": "#"}}, "$defs": {"l": {"type": "array", "items": {"$ref": "#"}}}}`
		union   = `{"type": "object", "properties": {"x": {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}, "$defs": {"a": {"required": ["a"], "properties": {"x": {"$ref": "#"}}}, "b": {"required": ["b"], "properties": {"x": {"$ref": "#"}}}}}`
		anyJSON = `{"type": "object", "additionalProperties": {"$ref": "#/$defs/v"}, "$defs": {"v": {"items": {"$ref": "#/$defs/v"}, "additionalProperties": {"$ref": "#/$defs/v"}}}}`
		twoWays = `{"type": "object", "properties": {"next": {"$ref": "#"}}, "patternProperties": {"n": {"$ref": "#"}}}`
		doubled = `{"type": "object", "properties": {"next": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`
	)
	nested := func(before string, levels int, after string) string {
		return strings.Repeat(before, levels) + "{}" + strings.Repeat(after, levels)
	}
	for _, c := range []struct {
		name, schema, value string
		refused             bool
	}{
		{"tree, as deep as it gets", tree, nested(`{"next":`, 63, "}"), false},
		{"any JSON, deep", anyJSON, `{"a":` + nested(`[{"b":`, 30, "}]") + `}`, false},
		{"two ways to one name, deep", twoWays, nested(`{"next":`, 60, "}"), true},
		{"tree, wide", tree, `{"list": [` + strings.Repeat(`{"next": {}},`, 10_000) + `{}]}`, false},
		{"query, deep", query, nested(`{"and": [{"or": [{"not":`, 12, "}]}]}"), false},
		{"query, wide", query, `{"and": [` + strings.Repeat(`{"or": [{}]},`, 5_000) + `{}]}`, false},
		{"union", union, `{"x": {"a": 1, "x": {"x": {"b": 1}}}}`, false},
		{"union, deep", union, nested(`{"x": {"a": 1, "x":`, 30, "}}"), true},
		{"doubled", doubled, nested(`{"next":`, 8, "}"), false},
		{"doubled, deep", doubled, nested(`{"next":`, 60, "}"), true},
		{"rows", `{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]}}}}`,
			`{"rows": [` + strings.Repeat(`{"a": 1, "b": "x"},`, 30_000) + `{"a": 1, "b": "x"}]}`, false},
		{"long text", `{"type": "object", "properties": {"path": {"type": "string", "pattern": "^[^/].*$"}, "content": {"type": "string", "maxLength": 5000000}}}`,
			`{"path": "a", "content": "` + strings.Repeat("x", 4<<20) + `"}`, false},
		{"many short texts, large pattern",
			`{"type": "object", "properties": {"a": {"items": {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z$"}}}}`,
			`{"a": [` + strings.Repeat(`"2026-01-02T03:04Z",`, 20_000) + `"2026-01-02T03:04Z"]}`, false},
		{"many numbers, large enum", `{"type": "object", "properties": {"a": {"items": {"enum": [` +
			strings.Repeat("0,", 1500) + `1]}}}}`,
			`{"a": [` + strings.Repeat("1,", 4000) + `1]}`, true},
		{"many arrays, long constant", `{"type": "object", "properties": {"a": {"items": {"const": [` +
			strings.Repeat("0,", 1500) + `1]}}}}`,
			`{"a": [` + strings.Repeat("[0],", 4000) + `1]}`, true},
		{"long text, large pattern", `{"type": "object", "properties": {"a": {"pattern": "(a|b|c|d|e|f){200}"}}}`,
			`{"a": "` + strings.Repeat("x", 4<<20) + `"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := mustCompile(t, c.schema).Validate([]byte(c.value))
			if refused := err != nil; refused != c.refused {
				t.Errorf("got %v, want refused: %v", err, c.refused)
			}
			if err != nil && !strings.Contains(err.Error(), "too large to be checked") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile([]byte(forecastSchema)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	for name, value := range map[string]string{
		"small":  `{"location": "Tokyo", "date": "today", "days": 3}`,
		"1MiB":   `{"location": "Tokyo", "start": 1, "end": "` + strings.Repeat("x", 1<<20) + `"}`,
		"refuse": `{"locaton": "Tokyo", "date": "tomorow", "days": 30}`,
	} {
		b.Run(name, func(b *testing.B) {
			compiled, data := mustCompile(b, forecastSchema), []byte(value)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compiled.Arguments(data); (err != nil) != (name == "refuse") {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPropertyInAnotherCase: encoding/json decodes such a property into the field of the declared one.
func TestPropertyInAnotherCase(t *testing.T) {
	t.Parallel()
	compiled := mustCompile(t, `{"type":"object","properties":{"path":{"type":"string"},"task":{},"ID":{},"id":{}}}`)
	for _, document := range []string{
		`{"path":"a","PATH":"b"}`, `{"Path":"b"}`, `{"p\u0041th":"b"}`, `{"tas\u212a":"b"}`, `{"ta\u017fk":"b"}`,
	} {
		var fields struct {
			Path string `json:"path"`
			Task string `json:"task"`
		}
		if err := json.Unmarshal([]byte(document), &fields); err != nil || fields.Path+fields.Task != "b" {
			t.Errorf("%s is decoded to %+v, %v", document, fields, err)
		}
		if _, err := compiled.Arguments([]byte(document)); err == nil || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", document, err)
		}
	}
	for _, document := range []string{`{"path":"a","other":"b","Other":"c"}`, `{"ID":1,"id":2}`, `{"other":{"PATH":1}}`} {
		if _, err := compiled.Arguments([]byte(document)); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}

// TestNestedPropertyInAnotherCase: encoding/json ignores the case of names at every depth.
func TestNestedPropertyInAnotherCase(t *testing.T) {
	t.Parallel()
	const path = `{"type":"object","properties":{"path":{}}}`
	in := func(keywords string) string { return `{"type":"object",` + keywords + `}` }
	for name, c := range map[string]struct{ schema, document, want string }{
		"property": {in(`"properties":{"filter":` + path + `}`), `{"filter":{"path":"a","PATH":"b"}}`, "filter: "},
		"item":     {in(`"properties":{"a":{"items":` + path + `}}`), `{"a":[{},{"Path":1}]}`, "a[1]: "},
		"item after others": {in(`"properties":{"a":{"prefixItems":[{}],"items":` + path + `}}`),
			`{"a":[{"Path":1},{"Path":1}]}`,
			"a[1]: "},
		"prefix item": {in(`"properties":{"a":{"prefixItems":[{},` + path + `]}}`),
			`{"a":[{"Path":1},{"Path":1}]}`, "a[1]: "},
		"contained": {in(`"properties":{"a":{"contains":` + path + `}}`), `{"a":[{"Path":1}]}`, "a[0]: "},
		"further item": {in(`"properties":{"a":{"unevaluatedItems":` + path + `}}`),
			`{"a":[{"Path":1}]}`, "a[0]: "},
		"further property": {in(`"additionalProperties":` + path), `{"x":{"Path":1}}`, "x: "},
		"pattern": {in(`"patternProperties":{"^x":` + path + `}`),
			`{"y":{"Path":1},"x1":{"Path":1}}`, "x1: "},
		"unevaluated": {in(`"unevaluatedProperties":` + path), `{"x":{"Path":1}}`, "x: "},
		"all of":      {in(`"allOf":[` + path + `]`), `{"Path":1}`, ""},
		"any of":      {in(`"anyOf":[{"required":["x"]},` + path + `]`), `{"Path":1}`, ""},
		"then":        {in(`"if":{"required":["x"]},"then":` + path), `{"Path":1}`, ""},
		"dependent":   {in(`"dependentSchemas":{"x":` + path + `}`), `{"Path":1}`, ""},
		"reference": {in(`"properties":{"a":{"$ref":"#/$defs/p"}},"$defs":{"p":` + path + `}`),
			`{"a":{"Path":1}}`, "a: "},
		"recursion": {in(`"properties":{"next":{"$ref":"#"},"path":{}}`),
			`{"next":{"next":{"PATH":1}}}`, "next.next: "},
		"declared deeper":    {in(`"properties":{"a":` + path + `}`), `{"Path":1,"a":{"Path":1}}`, "a: "},
		"declared elsewhere": {in(`"properties":{"a":` + path + `,"Path":{}}`), `{"Path":1,"a":{"Path":1}}`, "a: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := mustCompile(t, c.schema)
			want := c.want + `unknown property "`
			_, err := compiled.Arguments([]byte(c.document))
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, want)
			}
			if err := compiled.Validate([]byte(c.document)); err != nil {
				t.Errorf("as a result: %v", err)
			}
		})
	}
	for name, c := range map[string][2]string{
		"both are declared": {in(`"properties":{"a":{"properties":{"path":{},"PATH":{}}}}`),
			`{"a":{"path":1,"PATH":1}}`},
		"an alternative declares it": {in(`"anyOf":[` + path + `,{"properties":{"PATH":{}}}]`), `{"PATH":1}`},
		"declared for other items": {in(`"properties":{"a":{"prefixItems":[` + path + `]}}`),
			`{"a":[{},{"PATH":1}]}`},
		"declared for other members": {in(`"properties":{"a":` + path + `},"additionalProperties":{}`),
			`{"b":{"PATH":1}}`},
		"declared for further members": {in(`"properties":{"a":{}},"additionalProperties":` + path),
			`{"a":{"PATH":1}}`},
		"declared above": {in(`"properties":{"a":{},"path":{}}`), `{"a":{"PATH":1}}`},
		"nothing is declared at all": {in(`"additionalProperties":{"additionalProperties":{}}`),
			`{"a":{"b":1,"B":1}}`},
		"another name with its start": {in(`"properties":{"a":` + path + `}`), `{"a":{"PATHS":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := mustCompile(t, c[0]).Arguments([]byte(c[1])); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSpellingWork: looking for names in another case takes a bounded number of steps, where the validator takes few.
func TestSpellingWork(t *testing.T) {
	t.Parallel()
	var properties, members strings.Builder
	for i := range 1 << 10 {
		name := []byte("aaaaaaaaaa")
		for j := range name {
			name[j] -= byte(i >> j & 1 << 5)
		}
		fmt.Fprintf(&properties, `"%s":{},`, name)
		fmt.Fprintf(&members, `"%s":0,`, name)
	}
	compiled := mustCompile(t, `{"type":"object","properties":{"a":{"allOf":[`+strings.Repeat(`{"minProperties":0},`, 15)+
		`{}]},"b":{"properties":{`+properties.String()+`"z":{}}}}}`)
	document := `{"a":{` + members.String() + `"z":0}}`
	if err := compiled.Validate([]byte(document)); err != nil {
		t.Error(err)
	}
	_, err := compiled.Arguments([]byte(document))
	if err == nil || !strings.Contains(err.Error(), "too large to be checked") {
		t.Errorf("got %v", err)
	}
	long := strings.Repeat("x", 1<<20)
	compiled = mustCompile(t, `{"type":"object","additionalProperties":{"items":{"properties":{"path":{}}}}}`)
	_, err = compiled.Arguments([]byte(`{"` + long + `":[` + strings.Repeat(`{"path":0},`, 40_000) + `{"PATH":0}]}`))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("got %.300v", err)
	}
}

// patterns returns n properties with patterns of nearly the largest size.
func patterns(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"p%d": {"pattern": "(%c{30}){30}"}`, i, 'a'+i))
	}
	return strings.Join(list, ", ")
}

func FuzzSchema(f *testing.F) {
	f.Add(forecastSchema, `{"location": "Tokyo", "date": "today"}`)
	f.Add(forecastSchema, `{"shape": {"kind": "star"}, "either": 5, "tags": ["a", "a"], "nested": {"x y": []}}`)
	f.Add(`{"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#"}], "unevaluatedProperties": false}}}`, `{"x": {"y": 1}}`)
	f.Add(`{"type": "object", "patternProperties": {"^a": {"enum": [1, 1.0, "x", null, {}]}}, "if": {"minProperties": 2}, "then": false}`, `{"a": 1e2, "b": -0}`)
	f.Add(`{"type": "object", "dependentSchemas": {"a": {"contains": {"multipleOf": 0.1}}}, "propertyNames": {"format": "regex"}}`, `{"a": [0.3]}`)
	f.Add(`{"type": "object", "additionalProperties": {"items": {"properties": {"path": {}}}}}`, `{"x": [{"path": 0}, {"PATH": 0}]}`)
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := schema.Compile([]byte(text))
		if err != nil {
			return
		}
		err = s.Validate([]byte(value))
		_, asArguments := s.Arguments([]byte(value))
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

// TestHostileTextsInErrors: the texts of a value are in a buffer that is used again. An error keeps none of them: its
// text and problems stay the same while other values are validated.
func TestHostileTextsInErrors(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{
		"type": "object", "additionalProperties": false, "required": ["m"], "dependentRequired": {"d": ["e"]},
		"properties": {
			"c": {"const": "x"}, "d": {}, "e": {}, "m": {}, "camelCase": {},
			"n": {"enum": ["\u00e9\n", 1]}, "p": {"type": "string", "pattern": "^[0-9]+$", "description": "Digits."},
			"a": {"type": "array", "uniqueItems": true, "maxItems": 1, "contains": {"const": 1}},
			"o": {"oneOf": [{"const": "\u00e9"}, {"type": "object", "properties": {"k": {"const": "v"}}}]},
			"q": {"type": "object", "propertyNames": {"maxLength": 3}}
		}}`)
	kept := map[string]error{}
	texts := map[string]string{}
	for _, value := range []string{
		`{"\u0061dditional\n":1,"m":1}`, `{"c":"\u0041\u0042\u0043","m":1}`, `{"d":"\n\n\n"}`,
		`{"n":"\u0041\u0042\u0043","m":1}`,
		`{"p":"\u0041\u0042","m":1}`, `{"a":["\u0041","\u0041"],"m":1}`, `{"o":"\u0041\u0042","m":1}`,
		`{"o":{"k":"\u0041"},"m":1}`, `{"q":{"\u0041\u0042\u0043\u0044":"\u0041"},"m":1}`,
		`{"camel\u0043ase":1,"CAMEL\u0043ASE":1,"m":1}`,
		`{"\u0041":1,"\u0041":2}`, `{"a":"\u0041`, `{"a":"\ud800 \u0041"}`, `["\u0041"]`, `"\u0041"`,
	} {
		_, err := s.Arguments([]byte(value))
		if err == nil {
			t.Fatalf("%s is accepted", value)
		}
		kept[value], texts[value] = err, strings.Clone(fmt.Sprintf("%v %#v", err, err))
	}
	for n := range 100 {
		other := strings.Repeat(`\u005a\u005a`, 1+n*10)
		_, _ = s.Arguments([]byte(`{"` + other + `":"` + other + `","c":"` + other + `","a":["` + other + `"]}`))
	}
	for value, err := range kept {
		if got := fmt.Sprintf("%v %#v", err, err); got != texts[value] {
			t.Errorf("%s: the error was %s and is now %s", value, texts[value], got)
		}
	}
}

// TestArguments: guests read integers as integers, and do not see the null of a client for what it does not give.
func TestArguments(t *testing.T) {
	t.Parallel()
	compiled := mustCompile(t, `{"type":"object","required":["n"],"additionalProperties":false,"properties":{
		"n":{"type":"integer"},"x":{"type":"number"},"s":{"type":"string"},"e":{"enum":["a","b"]},
		"maybe":{"type":["integer","null"]},"any":{},"either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
		"list":{"type":"array","items":{"$ref":"#/$defs/point"}},"map":{"type":"object",
		"additionalProperties":{"type":"integer"}},"ids":{"type":"array","items":{"type":"integer"}}},
		"$defs":{"point":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"},"y":{"type":"string"}}}}}`)
	for given, want := range map[string]string{
		`{"n": 5}`:                       `{"n": 5}`, // unchanged, with its white space
		`{"n": 5.0}`:                     `{"n":5}`,
		`{"n":5e0,"x":5.0}`:              `{"n":5,"x":5.0}`,
		`{"n":-1.50e2}`:                  `{"n":-150}`,
		`{"n":0.05E+2}`:                  `{"n":5}`,
		`{"n":100e-2}`:                   `{"n":1}`,
		`{"n":-0.0}`:                     `{"n":0}`,
		`{"n":0e300}`:                    `{"n":0}`,
		`{"n":9007199254740993.0}`:       `{"n":9007199254740993}`,
		`{"n":18446744073709551615.0}`:   `{"n":18446744073709551615}`,
		`{"n":1e19}`:                     `{"n":10000000000000000000}`,
		`{"n":1e20}`:                     `{"n":1e20}`, // none of 64 bits
		`{"n":1e400}`:                    `{"n":1e400}`,
		`{"n":1,"either":2.0,"any":3.0}`: `{"n":1,"either":2,"any":3.0}`,
		`{"n":1,"list":[{"x":2.0,"y":null}],"map":{"a":1e1},"ids":[1.0,2]}`: `{"n":1,"list":[{"x":2}],"map":{"a":10},"ids":[1,2]}`,
		`{"s":null,"n":1}`:              `{"n":1}`,
		`{"n":1,"s":null,"e":null}`:     `{"n":1}`,
		`{"n":1,"maybe":null,"s":null}`: `{"n":1,"maybe":null}`,
		`{"n":1,"any":null}`:            `{"n":1,"any":null}`,
		"{\"n\":1,\"s\":\"a\\u00e9\"}":  "{\"n\":1,\"s\":\"a\\u00e9\"}",
	} {
		got, err := compiled.Arguments([]byte(given))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", given, got, err, want)
		}
	}
	for given, want := range map[string]string{
		`{"n":"1"}`:                        "n: must be an integer, not a string",
		`{"n":5.5}`:                        "n: must be an integer, not a number",
		`{"n":1e1000000}`:                  "n: is a number beyond the range",
		`{"n":null}`:                       "n: must be an integer, not null",
		`{"n":null,"s":null}`:              "n: must be an integer, not null",
		`{"n":1,"other":null}`:             `unknown property "other"`,
		`{"n":1,"N":null}`:                 `did you mean "n"?`,
		`{"n":1,"ids":[null]}`:             "ids[0]: must be an integer, not null",
		`{"n":"1","s":null}`:               "n: must be an integer, not a string",
		`{"n":1,"list":[{"x":null}]}`:      "list[0].x: must be an integer, not null",
		`{"n":1,"s":null,"list":[{}]}`:     "list[0].x: is missing",
		`{"n":1,"s":null,"either":[null]}`: "either: fits none of the alternatives",
	} {
		got, err := compiled.Arguments([]byte(given))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v; want %q", given, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s: must be a string, not null") {
			t.Errorf("%s: the error is about what is absent: %v", given, err)
		}
	}
}

// TestListedNames: a caller may use the names that it was shown or the declared ones, and errors have those that it used.
func TestListedNames(t *testing.T) {
	t.Parallel()
	compiled := mustCompile(t, `{"type":"object","required":["$top"],"additionalProperties":{"type":"object"},"properties":{
		"$top":{"type":"integer"},"filter[name]":{"type":"array","items":{"$ref":"#/$defs/f"}},"free":{"type":"object"}},
		"$defs":{"f":{"type":"object","additionalProperties":false,"required":["a b"],"properties":{"a b":{"enum":[1]}}}}}`)
	for given, want := range map[string]string{
		`{"_top": 1}`:                              `{"$top":1}`,
		`{"$top": 1}`:                              `{"$top": 1}`,
		`{"_top":1,"filter_name_":[{"a_b":1}]}`:    `{"$top":1,"filter[name]":[{"a b":1}]}`,
		`{"_top":1,"filter[name]":[{"a_b":1}]}`:    `{"$top":1,"filter[name]":[{"a b":1}]}`,
		`{"_top":1,"free":{"_top":1,"a_b":{}}}`:    `{"$top":1,"free":{"_top":1,"a_b":{}}}`, // the caller's own keys
		`{"_top":1,"other":{"filter_name_":null}}`: `{"$top":1,"other":{"filter_name_":null}}`,
		`{"_top":1`:                                `{"_top":1`,
		`{"_top":1} {}`:                            `{"_top":1} {}`,
		`[{"_top":1}]`:                             `[{"_top":1}]`,
		"{\"_top\":\"\xff\"}":                      "{\"$top\":\"\xff\"}",
	} {
		if got := compiled.Declared([]byte(given)); string(got) != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
	for given, want := range map[string]string{
		`{}`:                                      `_top: is missing`,
		`{"_top":"x"}`:                            `_top: must be an integer, not a string`,
		`{"$top":"x"}`:                            `$top: must be an integer, not a string`,
		`{"_top":1,"$top":2}`:                     `$top: the key occurs twice`,
		`{"_top":1,"free":[]}`:                    `free: must be an object, not an array`,
		`{"_top":1,"filter_name_":[{}]}`:          `filter_name_[0].a_b: is missing`,
		`{"_top":1,"filter_name_":[{"ab":1}]}`:    `did you mean "a_b"?`,
		`{"_top":1,"filter_name_":[{"a_b":2}]}`:   `filter_name_[0].a_b: must be`,
		`{"_top":1,"filter_name_":[{"A_B":{}}]}`:  `did you mean "a_b"?`,
		`{"_top":1,"filter[name]":[{"a b":"x"}]}`: `filter[name]`,
	} {
		declared := compiled.Declared([]byte(given))
		_, err := compiled.Arguments(declared)
		if err == nil {
			t.Errorf("%s became %s", given, declared)
			continue
		}
		if err = compiled.Explain(err, []byte(given), declared); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

// FuzzArguments: the arguments that guests see match the schema, are equal to those that were given except for absent
// members, and stay as they are when they pass again.
func FuzzArguments(f *testing.F) {
	compiled := mustCompile(f, `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`)
	f.Add([]byte(`{"n":5.0,"s":null,"list":[{"n":1e2},{"n":null}]}`))
	f.Add([]byte(`{"n":-0.0e400}`))
	f.Fuzz(func(t *testing.T, given []byte) {
		got, err := compiled.Arguments(given)
		if err != nil {
			return
		}
		if err := compiled.Validate(got); err != nil {
			t.Errorf("%s became %s: %v", given, got, err)
		}
		again, err := compiled.Arguments(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s became %s, and then %s, %v", given, got, again, err)
		}
	})
}
