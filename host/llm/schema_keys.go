package llm

import (
	"maps"
	"slices"
)

// renameKeys gives the properties names that are identifiers.
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
		describe(schema, name)
	}
	p.schema["properties"] = renamed
	required, _ := p.schema["required"].([]any)
	for i, name := range required {
		if s, ok := safe[name.(string)]; ok {
			required[i] = s
		}
	}
}

// describe tells the model the name that it does not see.
func describe(schema any, name string) {
	if object, ok := schema.(map[string]any); ok && object["title"] == nil {
		object["title"] = name
	}
}
