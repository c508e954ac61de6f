package toolschema

import (
	"maps"
	"slices"
	"strings"
)

// maxKey is the largest length of a property name that all providers accept, in bytes. Anthropic's rule is
// ^[a-zA-Z0-9_.-]{1,64}$; one tool that breaks it fails the whole request of a client.
const maxKey = 64

// Names maps the property names of an input schema that providers refuse to those that are listed instead. Other names
// stay.
type Names map[string]string

// NamesOf returns the names of all objects in a schema. A name has the same replacement everywhere in the schema, which
// no other property in it has.
func NamesOf(root map[string]any) Names {
	declared, refused := map[string]bool{}, false
	Each(root, 0, func(schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name := range properties {
			declared[name] = true
			refused = refused || Identifier(name, "_.-", maxKey) != name
		}
	})
	if !refused {
		return nil
	}
	names := Names(Identifiers(slices.Sorted(maps.Keys(declared)), "_.-", maxKey))
	maps.DeleteFunc(names, func(name, listed string) bool { return name == listed })
	return names
}

// Reversed returns the declared names by the listed ones.
func (n Names) Reversed() Names {
	reversed := make(Names, len(n))
	for name, listed := range n {
		reversed[listed] = name
	}
	return reversed
}

// Rename changes the names in a schema, and adds the declared ones as titles where there are none.
func (n Names) Rename(root map[string]any) {
	if len(n) == 0 {
		return
	}
	Each(root, 0, n.renameIn)
}

// renameIn changes the names in one schema.
func (n Names) renameIn(schema map[string]any) {
	for name, member := range elementsByName(schema["properties"]) {
		if object, ok := member.(map[string]any); ok && n[name] != "" && object["title"] == nil {
			object["title"] = name
		}
	}
	for _, keyword := range []string{"properties", "dependentRequired", "dependentSchemas", "dependencies"} {
		if members := elementsByName(schema[keyword]); members != nil {
			schema[keyword] = n.renamedKeys(members)
		}
	}
	n.renameList(schema["required"])
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		for _, list := range elementsByName(schema[keyword]) {
			n.renameList(list)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		schema["$ref"] = n.renamedReference(ref)
	}
}

func elementsByName(members any) map[string]any {
	byName, _ := members.(map[string]any)
	return byName
}

func (n Names) renamedKeys(members map[string]any) map[string]any {
	renamed := make(map[string]any, len(members))
	for name, member := range members {
		if listed := n[name]; listed != "" {
			name = listed
		}
		renamed[name] = member
	}
	return renamed
}

func (n Names) renameList(list any) {
	names, _ := list.([]any)
	for i, name := range names {
		if text, ok := name.(string); ok && n[text] != "" {
			names[i] = n[text]
		}
	}
}

var (
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
)

// renamedReference changes the names of properties in a JSON pointer.
func (n Names) renamedReference(ref string) string {
	if !strings.HasPrefix(ref, "#/") {
		return ref
	}
	tokens := strings.Split(ref, "/")
	for i := 2; i < len(tokens); i++ {
		if listed := n[unescapePointer.Replace(tokens[i])]; listed != "" &&
			(tokens[i-1] == "properties" || tokens[i-1] == "dependentSchemas") {
			tokens[i] = escapePointer.Replace(listed)
		}
	}
	return strings.Join(tokens, "/")
}

// Keywords that hold schemas.
var (
	oneKeywords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if",
		"items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	mapKeywords  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// Each calls visit with a schema and all schemas in it, down to maxDepth.
func Each(schema any, depth int, visit func(map[string]any)) {
	object, ok := schema.(map[string]any)
	if !ok || depth > maxDepth {
		return
	}
	visit(object)
	for _, keyword := range oneKeywords {
		Each(object[keyword], depth+1, visit)
	}
	for _, keyword := range listKeywords {
		for _, member := range elements[any](object[keyword]) {
			Each(member, depth+1, visit)
		}
	}
	for _, keyword := range mapKeywords {
		for _, member := range elementsByName(object[keyword]) {
			Each(member, depth+1, visit)
		}
	}
}
