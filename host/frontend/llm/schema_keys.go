package llm

import (
	"maps"
	"slices"
)

// renameKeys renames properties to identifiers that the API accepts.
func (p *parameters) renameKeys() {
	properties := p.schema["properties"].(map[string]any)
	safe := identifiers(slices.Sorted(maps.Keys(properties)), "_.-", 64)
	renamed := map[string]any{}
	for name, schema := range properties {
		renamed[safe[name]] = schema
		if safe[name] == name {
			continue
		}
		if p.keys == nil {
			p.keys = map[string]string{}
		}
		p.keys[safe[name]] = name
		if object, ok := schema.(map[string]any); ok && object["title"] == nil {
			object["title"] = name // shows the model the original name
		}
	}
	p.schema["properties"] = renamed
	required, _ := p.schema["required"].([]any)
	for i, name := range required {
		if s, ok := safe[name.(string)]; ok {
			required[i] = s
		}
	}
}
