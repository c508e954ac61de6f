package manifest

import (
	"encoding/json"
	"strings"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/toolschema"
)

// keywords are those of JSON Schema 2020-12, by what their value holds.
var keywords = func() map[string]keywordKind {
	kinds := map[string]keywordKind{}
	for kind, names := range map[keywordKind]string{
		schemaValue: "not if then else items contains additionalProperties propertyNames unevaluatedItems " +
			"unevaluatedProperties contentSchema",
		schemaList: "allOf anyOf oneOf prefixItems",
		schemaMap:  "$defs definitions properties patternProperties dependentSchemas",
		plain: "$schema $id $ref $anchor $dynamicRef $dynamicAnchor $comment $vocabulary type const enum multipleOf " +
			"maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems " +
			"uniqueItems maxContains minContains maxProperties minProperties required dependentRequired title " +
			"description default deprecated readOnly writeOnly examples format contentEncoding contentMediaType",
	} {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = kind
		}
	}
	return kinds
}()

type keywordKind int

const (
	plain keywordKind = iota
	schemaValue
	schemaList
	schemaMap
)

// schema reviews a schema of a tool.
func (r *review) schema(path string, data json.RawMessage, input bool) {
	value, err := schema.Decode(data)
	doc, ok := value.(map[string]any)
	if err != nil || !ok {
		return // not a valid manifest
	}
	if input {
		r.arguments(path, doc)
	}
	r.subschema(path, doc)
	r.strings(path, doc)
}

// arguments reviews what models read in order to fill in a tool's arguments.
func (r *review) arguments(path string, doc map[string]any) {
	for _, keyword := range toolschema.Composed(doc) {
		r.warn(path,
			"%s at the top is rejected by Anthropic and OpenAI, so clients are shown the schema without it: say in "+
				"the description what it asks for, and refuse in the tool what does not fit", keyword)
	}
	r.enums(path, doc)
	properties, _ := doc["properties"].(map[string]any)
	if len(properties) > 0 && doc["additionalProperties"] == nil && doc["unevaluatedProperties"] == nil {
		r.warn(path, "additionalProperties is missing: with false, a misspelt name is an error and not ignored")
	}
	for _, name := range keys(properties) {
		p, ok := properties[name].(map[string]any)
		if ok && p["description"] == nil && p["$ref"] == nil {
			r.warn(strictyaml.Key(path+".properties", name), "description is missing: models choose values by it")
		}
	}
}

// enums looks for lists of values without a type, which Gemini refuses.
func (r *review) enums(path string, value any) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			r.enums(strictyaml.Index(path, i), item)
		}
	case map[string]any:
		if _, list := value["enum"].([]any); list && value["type"] == nil {
			r.warn(path, "an enum without a type is refused by Gemini: add the type of its values")
		}
		for _, key := range keys(value) {
			r.enums(strictyaml.Key(path, key), value[key])
		}
	}
}

// subschema looks for keywords that are none, which a validator ignores.
func (r *review) subschema(path string, value any) {
	doc, _ := value.(map[string]any)
	for _, key := range keys(doc) {
		at, member := strictyaml.Key(path, key), doc[key]
		switch kind, known := keywords[key]; {
		case !known:
			if near := strictyaml.Nearest(key, keys(keywords)); near != "" {
				r.warn(path, "%q is not a keyword of JSON Schema and is ignored: did you mean %q?",
					clip.Runes(key, 60), near)
			}
		case kind == schemaValue:
			r.subschema(at, member)
		case kind == schemaList:
			list, _ := member.([]any)
			for i, item := range list {
				r.subschema(strictyaml.Index(at, i), item)
			}
		case kind == schemaMap:
			members, _ := member.(map[string]any)
			for _, name := range keys(members) {
				r.subschema(strictyaml.Key(at, name), members[name])
			}
		}
	}
}

// strings reviews every text of a schema, because models read all of them.
func (r *review) strings(path string, value any) {
	switch value := value.(type) {
	case string:
		r.suspicious(path, value)
	case []any:
		for i, item := range value {
			r.strings(strictyaml.Index(path, i), item)
		}
	case map[string]any:
		for _, key := range keys(value) {
			r.suspicious(path, key)
			r.strings(strictyaml.Key(path, key), value[key])
		}
	}
}
