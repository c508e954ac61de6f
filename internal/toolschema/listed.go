package toolschema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Listed returns an input schema for clients, which pass it on to providers: flattened if its top is composed, with
// items for each array, and with other names for properties that providers refuse (Names). Otherwise it is unchanged
// byte by byte. Claude's clients drop tools with anyOf, oneOf or allOf at the top, OpenAI refuses an array without
// items, and some clients fail the whole request for one such tool. Arguments are still validated against the original
// schema, with the original names.
func Listed(schema json.RawMessage) json.RawMessage {
	root := decoded(schema)
	return listed(schema, root, NamesOf(root))
}

// ListedAs is Listed with the names of another schema, of which schema is a part.
func ListedAs(whole, schema json.RawMessage) json.RawMessage {
	return listed(schema, decoded(schema), NamesOf(decoded(whole)))
}

func listed(schema json.RawMessage, root map[string]any, names Names) json.RawMessage {
	if root == nil {
		return schema
	}
	changed := len(names) > 0
	if len(Composed(root)) > 0 && Flatten(root) == nil {
		dropDangling(root, root, 0)
		changed = true
	}
	Each(root, 0, func(part map[string]any) {
		if part["items"] == nil && slices.Contains(TypesOf(part), "array") {
			part["items"] = map[string]any{}
			changed = true
		}
	})
	if !changed {
		return schema
	}
	names.Rename(root)
	return encoded(root, schema)
}

// Flattened returns an input schema with the properties of its composed top, and unchanged byte by byte without that.
func Flattened(schema json.RawMessage) json.RawMessage {
	root := decoded(schema)
	if len(Composed(root)) == 0 || Flatten(root) != nil {
		return schema
	}
	dropDangling(root, root, 0)
	return encoded(root, schema)
}

// decoded returns nil for what is no object.
func decoded(schema json.RawMessage) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber() // preserves the digits of numbers
	var root map[string]any
	if decoder.Decode(&root) != nil {
		return nil
	}
	return root
}

func encoded(root map[string]any, instead json.RawMessage) json.RawMessage {
	data, err := json.Marshal(root)
	if err != nil {
		return instead
	}
	return data
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
