// Package toolschema makes input schemas of tools such that clients and providers of models take them.
package toolschema

import (
	"errors"
	"reflect"
	"slices"
	"strings"
)

const (
	// maxHops bounds how many references and compositions are followed at the top of a schema, one within the other and in all.
	maxHops, maxSteps = 16, 1000
	// maxEither bounds how many schemas one property may have that do not agree.
	maxEither = 8
)

// errNotObject is for schemas of something else than arguments.
var errNotObject = errors.New("its schema does not describe an object")

// compositions are the keywords that no provider takes at the top of a schema.
var compositions = []string{"$ref", "allOf", "anyOf", "const", "dependentSchemas", "else", "enum", "if", "not", "oneOf", "then"}

// Composed returns the keywords at the top of a schema that Flatten takes away.
func Composed(root map[string]any) []string {
	var found []string
	for _, keyword := range compositions {
		if _, ok := root[keyword]; ok {
			found = append(found, keyword)
		}
	}
	return found
}

// Flatten makes the top of a schema an object with properties: providers allow neither references nor compositions there. The schema
// becomes wider where its meaning cannot be kept.
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

// shape is what a schema says of an object's properties, whichever way it is composed.
type shape struct {
	root       map[string]any // what references lead into
	steps      *int           // that may still be taken
	properties map[string]any
	required   []string
}

// add takes in schema as one that applies besides the others. It reports false if schema allows no object.
func (s *shape) add(schema map[string]any, depth int) bool {
	if kinds := TypesOf(schema); len(kinds) > 0 && !slices.Contains(kinds, "object") {
		return false
	}
	if *s.steps--; depth > maxHops || *s.steps < 0 {
		return true // wider than it is
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

// list is the reverse of elements.
func list[T any](values []T) []any {
	out := make([]any, len(values))
	for i, value := range values {
		out[i] = value
	}
	return out
}

// elements are those of a list that are a T.
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

// addAny takes in alternatives: the properties of all, and what every one of them requires.
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
			fit[0].required = slices.DeleteFunc(fit[0].required, func(name string) bool { return !slices.Contains(alternative.required, name) })
		}
	}
	if len(fit) > 0 {
		s.required = append(s.required, fit[0].required...)
	}
	return len(fit) > 0 || len(branches) == 0
}

// merge adds properties; one that is there already may be either.
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

// either is a schema for what a or b allows.
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

// types are those that JSON has.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// TypesOf are the types that a schema allows, or none if it does not say.
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

// Lookup follows a reference into root: "#" or a JSON pointer (RFC 6901) after it. It returns nil if nothing is there.
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
			at = node[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		default:
			return nil
		}
	}
	schema, _ := at.(map[string]any)
	return schema
}
