package toolschema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Listed returns an input schema for clients: flattened if its top is composed, else unchanged byte by byte. Claude's
// clients drop tools with anyOf, oneOf or allOf at the top, and some fail the whole request. Arguments are still
// validated against the original schema.
func Listed(schema json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // preserves the digits of numbers
	var root map[string]any
	if decoder.Decode(&root) != nil || len(Composed(root)) == 0 || Flatten(root) != nil {
		return schema
	}
	dropDangling(root, root, 0)
	flat, err := json.Marshal(root)
	if err != nil {
		return schema
	}
	return flat
}

// maxDepth bounds the recursion of dropDangling.
const maxDepth = 64

// dropDangling removes references to parts that Flatten removed.
func dropDangling(root map[string]any, value any, depth int) {
	if depth > maxDepth {
		return
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			dropDangling(root, element, depth+1)
		}
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok && strings.HasPrefix(ref, "#/") && Lookup(root, ref) == nil {
			delete(value, "$ref")
		}
		for _, member := range value {
			dropDangling(root, member, depth+1)
		}
	}
}
