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
	// maxSchema bounds the schema of a tool, in bytes: it is sent with every request.
	maxSchema = 128 << 10
	// maxSchemaDepth bounds how deep schemas are nested.
	maxSchemaDepth = 64
)

// dialect says what an API accepts of tools.
type dialect struct {
	tools       int  // how many; 0 is any number
	name        int  // bytes of a name, which has letters, digits, "_" and "-"
	description int  // characters; 0 is any number
	keys        bool // the arguments' names are of at most 64 letters, digits, "_", "." and "-"
	patterns    bool // "pattern" may be any regular expression, not only one that is anchored at both ends
}

// parameters is a tool's schema in a dialect.
type parameters struct {
	schema map[string]any
	// keys are the original names of arguments that had to be renamed, by the new ones.
	keys map[string]string
}

// adapt rewrites schema for d: what is refused goes, and the meaning becomes wider rather than narrower where it cannot be kept.
// An error means that nothing useful would be left.
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
	p := &parameters{schema: root}
	if d.keys {
		p.renameKeys()
	}
	c.clean(root, 0) // of references to what is gone
	if sent, err := json.Marshal(root); err != nil || len(sent) > 2*maxSchema {
		return nil, errors.New("its schema grows too long when its alternatives are put together")
	}
	return p, c.err
}

func decodeSchema(schema json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // so that numbers stay as they are written
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

// cleaner takes out of a schema what providers refuse at any depth.
type cleaner struct {
	root    map[string]any
	dialect dialect
	err     error
}

// Keywords that hold schemas.
var (
	schemaKeywords = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	listKeywords = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapKeywords  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// identityKeywords say where a schema is from. Without them all references are into the schema itself.
var identityKeywords = []string{"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$schema", "$vocabulary"}

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

// cleanReference keeps references that lead somewhere within the schema.
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

// modernize turns the forms of older drafts into those of JSON Schema 2020-12.
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
		if is, ok := schema[exclusive].(bool); ok { // of draft 4
			delete(schema, exclusive)
			if limit, has := schema[inclusive]; is && has {
				schema[exclusive] = limit
				delete(schema, inclusive)
			}
		}
	}
}

// cleanValues checks keywords whose values providers check.
func (c *cleaner) cleanValues(schema map[string]any) {
	if kinds := toolschema.TypesOf(schema); len(kinds) == 0 {
		delete(schema, "type")
	} else if slices.Contains(kinds, "array") && schema["items"] == nil {
		schema["items"] = map[string]any{} // OpenAI refuses an array without
	}
	keepStrings(schema, "required")
	if list, ok := schema["enum"].([]any); !ok || len(list) == 0 {
		delete(schema, "enum")
	}
	pattern, ok := schema["pattern"].(string)
	if !ok || !c.dialect.patterns && !(strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$")) {
		delete(schema, "pattern")
	}
}

// keepStrings keeps a list of strings, and takes anything else out.
func keepStrings(schema map[string]any, keyword string) {
	list, ok := schema[keyword].([]any)
	if ok && !slices.ContainsFunc(list, func(v any) bool { _, is := v.(string); return !is }) {
		return
	}
	delete(schema, keyword)
}

func (c *cleaner) cleanMember(schema map[string]any, keyword string, depth int) {
	switch member := schema[keyword].(type) {
	case map[string]any:
		c.clean(member, depth+1)
	case bool:
		if member && keyword != "additionalProperties" {
			schema[keyword] = map[string]any{} // means the same, and is understood by all
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

// cleanBranch returns a schema for whatever stands where one should be.
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
