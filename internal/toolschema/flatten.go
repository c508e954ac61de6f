// Package toolschema adapts the input schemas of tools to the restrictions of MCP clients and model providers.
//
// Listed returns a schema for tools/list. Flatten removes references and compositions such as oneOf from the top of a
// decoded schema; Lookup and TypesOf inspect schemas. Identifiers and Names replace names that providers refuse.
package toolschema

import (
	"errors"
	"reflect"
	"slices"
	"strings"
)

const (
	// maxHops and maxSteps bound the references and compositions followed at the top of a schema, nested and in total.
	maxHops, maxSteps = 16, 1000
	// maxEither bounds the different schemas that are combined for one property.
	maxEither = 8
)

// errNotObject means that a schema allows no object.
var errNotObject = errors.New("its schema does not describe an object")

// compositions are the keywords that no provider accepts at the top of a schema.
var compositions = []string{"$ref", "allOf", "anyOf", "const", "dependentSchemas", "else", "enum", "if",
	"not", "oneOf", "then"}

// Composed returns the keywords at the top of a schema that Flatten removes.
func Composed(root map[string]any) []string {
	var found []string
	for _, keyword := range compositions {
		if _, ok := root[keyword]; ok {
			found = append(found, keyword)
		}
	}
	return found
}

// Flatten rewrites the top of a schema to an object with properties, because providers allow neither references nor
// compositions there. If the meaning cannot be preserved, the result accepts more than the original.
func Flatten(root map[string]any) error {
	steps := maxSteps
	top := shape{root: root, steps: &steps}
	if !top.add(root, 0) {
		return errNotObject
	}
	for _, keyword := range compositions {
		delete(root, keyword)
	}
	root["type"] = "object"
	root["properties"] = top.properties
	if top.properties == nil {
		root["properties"] = map[string]any{}
	}
	delete(root, "required")
	if len(top.required) > 0 {
		slices.Sort(top.required)
		root["required"] = list(slices.Compact(top.required))
	}
	return nil
}

// shape collects the properties of an object from a composed schema.
type shape struct {
	root       map[string]any // the schema that references point into
	steps      *int           // remaining of maxSteps
	properties map[string]any
	required   []string
}

// add merges a schema that applies in addition. It reports false if schema allows no object.
func (s *shape) add(schema map[string]any, depth int) bool {
	if kinds := TypesOf(schema); len(kinds) > 0 && !slices.Contains(kinds, "object") {
		return false
	}
	if *s.steps--; depth > maxHops || *s.steps < 0 {
		return true // ignore the rest, which accepts more
	}
	properties, _ := schema["properties"].(map[string]any)
	s.merge(properties)
	s.required = append(s.required, elements[string](schema["required"])...)
	ok := true
	if ref, _ := schema["$ref"].(string); ref != "" {
		ok = s.add(Lookup(s.root, ref), depth+1)
	}
	for _, branch := range elements[map[string]any](schema["allOf"]) {
		ok = s.add(branch, depth+1) && ok
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		ok = s.addAny(elements[map[string]any](schema[keyword]), depth+1) && ok
	}
	return ok
}

// list reverses elements.
func list[T any](values []T) []any {
	out := make([]any, len(values))
	for i, value := range values {
		out[i] = value
	}
	return out
}

// elements returns the elements of a list that have type T.
func elements[T any](list any) []T {
	all, _ := list.([]any)
	var out []T
	for _, element := range all {
		if is, ok := element.(T); ok {
			out = append(out, is)
		}
	}
	return out
}

// addAny merges alternatives: the properties of all, and the required properties common to all.
func (s *shape) addAny(branches []map[string]any, depth int) bool {
	var fit []shape
	for _, branch := range branches {
		alternative := shape{root: s.root, steps: s.steps}
		if alternative.add(branch, depth) {
			fit = append(fit, alternative)
		}
	}
	for i, alternative := range fit {
		s.merge(alternative.properties)
		if i > 0 {
			fit[0].required = slices.DeleteFunc(fit[0].required, func(name string) bool {
				return !slices.Contains(alternative.required, name)
			})
		}
	}
	if len(fit) > 0 {
		s.required = append(s.required, fit[0].required...)
	}
	return len(fit) > 0 || len(branches) == 0
}

// merge adds properties. A property with two schemas may match either.
func (s *shape) merge(properties map[string]any) {
	if s.properties == nil && properties != nil {
		s.properties = map[string]any{}
	}
	for name, schema := range properties {
		if known, ok := s.properties[name]; ok {
			schema = either(known, schema)
		}
		s.properties[name] = schema
	}
}

// either returns a schema that allows what a or b allows.
func either(a, b any) any {
	list := []any{a}
	if composed, ok := a.(map[string]any); ok && len(composed) == 1 && composed["anyOf"] != nil {
		list = elements[any](composed["anyOf"])
	}
	if slices.ContainsFunc(list, func(known any) bool { return reflect.DeepEqual(known, b) }) {
		return a
	}
	if len(list) >= maxEither {
		return map[string]any{}
	}
	return map[string]any{"anyOf": append(slices.Clone(list), b)}
}

// types are the types of JSON.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// TypesOf returns the value of a schema's "type", or none if it is missing or invalid.
func TypesOf(schema map[string]any) []string {
	list, ok := schema["type"].([]any)
	if !ok {
		list = []any{schema["type"]}
	}
	var kinds []string
	for _, kind := range list {
		name, _ := kind.(string)
		if !slices.Contains(types, name) {
			return nil
		}
		kinds = append(kinds, name)
	}
	return kinds
}

// Lookup resolves a reference into root: "#" with an optional JSON pointer (RFC 6901). It returns nil if it is
// dangling.
func Lookup(root map[string]any, ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = root
	for i, token := range strings.Split(path, "/") {
		if i == 0 {
			if token != "" {
				return nil // an anchor
			}
			continue
		}
		switch node := at.(type) {
		case map[string]any:
			at = node[unescapePointer.Replace(token)]
		default:
			return nil
		}
	}
	schema, _ := at.(map[string]any)
	return schema
}
