package mcpclient

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/toolschema"
)

// repaired converts keywords of older drafts in a schema, and drops keywords that hako refuses or that mean nothing, so
// that one of them does not cost the whole tool. It returns the keywords that it dropped although they mean something,
// sorted: the schema accepts more without them.
func repaired(root map[string]any) (dropped []string) {
	drop := func(schema map[string]any, keyword string) {
		delete(schema, keyword)
		if !slices.Contains(dropped, keyword) {
			dropped = append(dropped, keyword)
		}
	}
	toolschema.Each(root, 0, func(schema map[string]any) {
		for keyword, value := range schema {
			if value == nil && keyword != "const" && keyword != "default" {
				delete(schema, keyword) // some servers write null for what they leave out
			}
		}
		if tuple, ok := schema["items"].([]any); ok { // up to draft 2019-09
			schema["prefixItems"] = tuple
			delete(schema, "items")
			if rest, ok := schema["additionalItems"]; ok {
				schema["items"] = rest
			}
			delete(schema, "additionalItems")
		}
		if _, is := schema["required"].(bool); is { // draft 3
			drop(schema, "required")
		}
		if pattern, ok := schema["pattern"].(string); ok {
			if _, err := regexp.Compile(pattern); err != nil && strings.Contains(pattern, "(?") {
				drop(schema, "pattern") // lookaround, which RE2 does not have
			}
		}
	})
	if list, ok := root["required"].([]any); ok {
		properties, _ := root["properties"].(map[string]any)
		known := slices.DeleteFunc(slices.Clone(list), func(name any) bool {
			text, ok := name.(string)
			return ok && properties[text] == nil
		})
		if len(known) < len(list) {
			drop(root, "required")
			root["required"] = known
		}
	}
	slices.Sort(dropped)
	return dropped
}
