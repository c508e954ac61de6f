package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/toolschema"
)

// IsPair reports whether a word of a command line has the form NAME=VALUE, and is not the beginning of a JSON value.
func IsPair(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "{}[]\"") && utf8.ValidString(word)
}

// Arguments returns the arguments that words of the form NAME=VALUE describe, as a JSON object. The input schema says
// how a value is read: as text where a text is expected, else as JSON. A list is given as JSON, or by its name once for
// each element. Values for names that the schema does not know are JSON if they can be, and text if not.
//
// It fails for a word of another form, a value that cannot be of its type, and a name that is given twice.
func Arguments(schema json.RawMessage, words []string) (json.RawMessage, error) {
	root := map[string]any{}
	_ = json.Unmarshal(schema, &root) // without a schema, nothing is known
	input := parameters{root}
	values, lists := map[string]json.RawMessage{}, map[string][]json.RawMessage{}
	for _, word := range words {
		if !IsPair(word) {
			return nil, fmt.Errorf("%q is not of the form NAME=VALUE, and not the only argument, which may be JSON", word)
		}
		name, text, _ := strings.Cut(word, "=")
		property := input.property(name)
		if items, ok := input.items(property); ok && !strings.HasPrefix(strings.TrimSpace(text), "[") {
			value, err := input.value(items, text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			lists[name] = append(lists[name], value)
			continue
		}
		if values[name] != nil {
			return nil, fmt.Errorf("%s is given twice, and is no list", name)
		}
		value, err := input.value(property, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = value
	}
	for name, list := range lists {
		if values[name] != nil {
			return nil, fmt.Errorf("%s is given as a JSON list and by its elements", name)
		}
		values[name], _ = json.Marshal(list) // of valid JSON
	}
	return json.Marshal(values)
}

// Parameter is a tool's argument, for the completion of a command line.
type Parameter struct {
	Name, Description string
	Required          bool
	// Values are those that it may have, if they are few.
	Values []string
}

// Parameters lists the arguments of an input schema, the required ones first.
func Parameters(schema json.RawMessage) []Parameter {
	root := map[string]any{}
	_ = json.Unmarshal(schema, &root)
	input := parameters{root}
	properties, _ := root["properties"].(map[string]any)
	required, _ := root["required"].([]any)
	var list []Parameter
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := input.property(name)
		p := Parameter{Name: name, Required: slices.Contains(required, any(name))}
		p.Description, _ = property["description"].(string)
		if items, ok := input.items(property); ok {
			property = items
		}
		values, _ := property["enum"].([]any)
		for _, value := range values {
			p.Values = append(p.Values, fmt.Sprint(value))
		}
		if slices.Equal(toolschema.TypesOf(property), []string{"boolean"}) {
			p.Values = []string{"true", "false"}
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b Parameter) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return list
}

// parameters is an input schema.
type parameters struct{ root map[string]any }

// property is the schema of an argument, or nil if nothing is known of it.
func (p parameters) property(name string) map[string]any {
	properties, _ := p.root["properties"].(map[string]any)
	schema, ok := properties[name].(map[string]any)
	if !ok {
		schema, _ = p.root["additionalProperties"].(map[string]any)
	}
	return p.resolve(schema)
}

// resolve follows references, which may be circular.
func (p parameters) resolve(schema map[string]any) map[string]any {
	for range 8 {
		ref, ok := schema["$ref"].(string)
		if !ok {
			break
		}
		schema = toolschema.Lookup(p.root, ref)
	}
	return schema
}

// items is the schema of the elements if the argument can only be a list.
func (p parameters) items(schema map[string]any) (map[string]any, bool) {
	kinds := slices.DeleteFunc(p.types(schema), func(kind string) bool { return kind == "null" })
	items, _ := schema["items"].(map[string]any)
	return p.resolve(items), slices.Equal(kinds, []string{"array"})
}

// types are the types that a value may have, or none if they are not known.
func (p parameters) types(schema map[string]any) []string {
	if kinds := toolschema.TypesOf(schema); kinds != nil {
		return kinds
	}
	var kinds []string
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := schema[keyword].([]any)
		for _, branch := range branches {
			object, _ := branch.(map[string]any)
			kinds = append(kinds, toolschema.TypesOf(p.resolve(object))...)
		}
	}
	if values, ok := schema["enum"].([]any); ok && kinds == nil {
		for _, value := range values {
			if _, text := value.(string); text {
				return []string{"string"}
			}
		}
	}
	return kinds
}

// value reads a value of the schema.
func (p parameters) value(schema map[string]any, text string) (json.RawMessage, error) {
	kinds := p.types(schema)
	kind := kindOf(text)
	asJSON := kind != "" && kind != "string"
	switch {
	case asJSON && (len(kinds) == 0 || slices.Contains(kinds, kind) || kind == "number" && slices.Contains(kinds, "integer")) &&
		!(kind == "null" && slices.Contains(kinds, "string")): // the word null as a text
		return json.RawMessage(strings.TrimSpace(text)), nil
	case len(kinds) == 0 || slices.Contains(kinds, "string"):
		return json.Marshal(text)
	case slices.Contains(kinds, "boolean"):
		return nil, strictyaml.Unknown("value", text, []string{"true", "false"})
	case slices.Contains(kinds, "object"), slices.Contains(kinds, "array"):
		return nil, errors.New("the value has to be JSON")
	}
	return nil, fmt.Errorf("%q is no %s", text, strings.Join(kinds, " or "))
}

// kindOf is the JSON type of a text, or empty if it is no JSON.
func kindOf(text string) string {
	text = strings.TrimSpace(text)
	if !json.Valid([]byte(text)) {
		return ""
	}
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
