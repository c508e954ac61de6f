package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/toolschema"
)

const (
	// maxSchema bounds a tool's schema, which is sent with every request, in bytes.
	maxSchema = 128 << 10
	// maxSchemaDepth bounds the nesting of schemas.
	maxSchemaDepth = 64
)

// dialect has an API's limits on tool definitions.
type dialect struct {
	tools       int  // number of tools; 0 means no limit
	name        int  // bytes of a name of letters, digits, "_" and "-"
	deferred    int  // number of tools with which some may be deferred; 0 means that the API has no deferred loading
	groups      bool // deferred tools are sent in groups, so that an error does not tell them by their index
	description int  // characters; 0 means no limit
	patterns    bool // "pattern" need not be anchored at both ends
	// refused are the keywords that the provider has refused.
	refused map[string]bool
}

// parameters is a tool's schema adapted to a dialect.
type parameters struct {
	schema map[string]any
}

// adapt rewrites schema for d. Keywords that the API refuses are removed, which may make the schema accept more than
// the original but never less. It fails if nothing useful would remain.
func adapt(schema json.RawMessage, d dialect) (*parameters, error) {
	if len(schema) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes: at most %d are sent", len(schema), maxSchema)
	}
	root, err := decodeSchema(schema)
	if err != nil {
		return nil, err
	}
	c := cleaner{root: root, dialect: d}
	c.clean(root, 0)
	if c.err != nil {
		return nil, c.err
	}
	if err := toolschema.Flatten(root); err != nil {
		return nil, err
	}
	c.clean(root, 0) // removes references that have become dangling
	if sent, err := json.Marshal(root); err != nil || len(sent) > 2*maxSchema {
		return nil, errors.New("its schema grows too long when its alternatives are put together")
	}
	return &parameters{schema: root}, c.err
}

func decodeSchema(schema json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // preserves the digits of numbers
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("its schema is not JSON: %w", err)
	}
	switch root := root.(type) {
	case map[string]any:
		return root, nil
	case nil:
		return map[string]any{}, nil
	}
	if root == true {
		return map[string]any{}, nil
	}
	return nil, errors.New("its schema is not an object")
}

// cleaner removes from a schema what providers refuse at any depth.
type cleaner struct {
	root    map[string]any
	dialect dialect
	err     error
}

// Keywords that hold schemas.
var (
	schemaKeywords = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	listKeywords = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapKeywords  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// identityKeywords identify a schema and its parts. Without them all references point into the schema itself.
var identityKeywords = []string{"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor",
	"$recursiveRef", "$schema", "$vocabulary"}

func (c *cleaner) clean(schema map[string]any, depth int) {
	if depth > maxSchemaDepth {
		c.err = fmt.Errorf("its schema is nested deeper than %d", maxSchemaDepth)
	}
	if c.err != nil {
		return
	}
	for _, keyword := range identityKeywords {
		delete(schema, keyword)
	}
	for keyword := range c.dialect.refused {
		delete(schema, keyword)
	}
	c.cleanReference(schema)
	modernize(schema)
	c.cleanValues(schema)
	for _, keyword := range schemaKeywords {
		c.cleanMember(schema, keyword, depth)
	}
	for _, keyword := range listKeywords {
		c.cleanList(schema, keyword, depth)
	}
	for _, keyword := range mapKeywords {
		c.cleanMap(schema, keyword, depth)
	}
}

// cleanReference removes references that do not resolve within the schema.
func (c *cleaner) cleanReference(schema map[string]any) {
	value, ok := schema["$ref"]
	if !ok {
		return
	}
	ref, _ := value.(string)
	if ref != "" && !strings.HasPrefix(ref, "#") {
		c.err = errors.New("its schema refers to another document")
	}
	if toolschema.Lookup(c.root, ref) == nil {
		delete(schema, "$ref")
	}
}

// modernize converts keywords of older drafts to JSON Schema 2020-12.
func modernize(schema map[string]any) {
	if tuple, ok := schema["items"].([]any); ok {
		schema["prefixItems"], schema["items"] = tuple, schema["additionalItems"]
		if schema["items"] == nil {
			delete(schema, "items")
		}
		delete(schema, "additionalItems")
	}
	for _, bound := range []string{"Minimum", "Maximum"} {
		exclusive, inclusive := "exclusive"+bound, strings.ToLower(bound)
		if is, ok := schema[exclusive].(bool); ok { // draft 4
			delete(schema, exclusive)
			if limit, has := schema[inclusive]; is && has {
				schema[exclusive] = limit
				delete(schema, inclusive)
			}
		}
	}
}

// cleanValues removes keywords with values that providers refuse.
func (c *cleaner) cleanValues(schema map[string]any) {
	if kinds := toolschema.TypesOf(schema); len(kinds) == 0 {
		delete(schema, "type")
	} else if slices.Contains(kinds, "array") && schema["items"] == nil {
		schema["items"] = map[string]any{} // OpenAI refuses an array without items
	}
	cleanRequired(schema)
	if list, ok := schema["enum"].([]any); !ok || len(list) == 0 {
		delete(schema, "enum")
	}
	pattern, ok := schema["pattern"].(string)
	if !ok || !c.dialect.patterns && !(strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$")) {
		delete(schema, "pattern")
	}
}

// cleanRequired removes the keyword required unless it is a list of strings.
func cleanRequired(schema map[string]any) {
	list, ok := schema["required"].([]any)
	if ok && !slices.ContainsFunc(list, func(v any) bool { _, is := v.(string); return !is }) {
		return
	}
	delete(schema, "required")
}

func (c *cleaner) cleanMember(schema map[string]any, keyword string, depth int) {
	switch member := schema[keyword].(type) {
	case map[string]any:
		c.clean(member, depth+1)
	case bool:
		if member && keyword != "additionalProperties" {
			schema[keyword] = map[string]any{} // equivalent, and accepted by all providers
		}
	default:
		delete(schema, keyword)
	}
}

func (c *cleaner) cleanList(schema map[string]any, keyword string, depth int) {
	list, ok := schema[keyword].([]any)
	if !ok || len(list) == 0 {
		delete(schema, keyword)
		return
	}
	for i, member := range list {
		list[i] = c.cleanBranch(member, depth)
	}
}

func (c *cleaner) cleanMap(schema map[string]any, keyword string, depth int) {
	members, ok := schema[keyword].(map[string]any)
	if !ok {
		delete(schema, keyword)
		return
	}
	for name := range maps.Keys(members) {
		members[name] = c.cleanBranch(members[name], depth)
	}
}

// cleanBranch returns a schema object for any value in the place of a schema.
func (c *cleaner) cleanBranch(member any, depth int) any {
	switch member := member.(type) {
	case map[string]any:
		c.clean(member, depth+1)
		return member
	case bool:
		if !member {
			return map[string]any{"not": map[string]any{}}
		}
	}
	return map[string]any{}
}
