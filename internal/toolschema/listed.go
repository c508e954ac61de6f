package toolschema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Listed returns an input schema as clients are shown it: with a composed top made flat. Every other schema stays as it is, byte by byte.
// Claude's clients drop a tool with an anyOf, oneOf or allOf at the top, some of them the whole request. Arguments are still checked
// against the original.
func Listed(schema json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // so that numbers stay as they are written
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

// maxDepth bounds how deep dropDangling looks.
const maxDepth = 64

// dropDangling takes away references into what Flatten has removed.
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
