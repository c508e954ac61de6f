package toolset

import (
	"maps"
	"slices"

	"github.com/hako-run/hako/internal/strictyaml"
)

// YAML returns the set as it stands in hako.yaml, from "toolsets:" on. It fails for a text that is not valid UTF-8, and
// for a fixed argument that is no JSON.
func (s *Set) YAML() ([]byte, error) {
	var tools []any
	for i := range s.Tools {
		entry := s.Tools[i].mapping()
		if len(entry) == 1 {
			tools = append(tools, s.Tools[i].Pattern)
		} else {
			tools = append(tools, entry)
		}
	}
	set := strictyaml.Mapping{
		{Key: "description", Value: s.Description}, {Key: "tools", Value: tools}, {Key: "except", Value: s.Except},
		{Key: "resources", Value: s.Resources}, {Key: "prompts", Value: s.Prompts},
	}
	if s.For != nil {
		set = append(set, strictyaml.Entry{Key: "for", Value: s.For.mapping()})
	}
	return strictyaml.Write(strictyaml.Mapping{{Key: "toolsets", Value: strictyaml.Mapping{
		{Key: "sets", Value: strictyaml.Mapping{{Key: s.Name, Value: set}}},
	}}}, "")
}

// RulesYAML returns rules as they stand in hako.yaml, from "toolsets:" on. It fails for a text that is not valid UTF-8.
func RulesYAML(rules []Rule) ([]byte, error) {
	var list []strictyaml.Mapping
	for i := range rules {
		r := &rules[i]
		list = append(list, append(r.mapping(), strictyaml.Mapping{
			{Key: "frontends", Value: r.Frontends}, {Key: "channels", Value: r.Channels}, {Key: "toolset",
				Value: r.Set},
		}...))
	}
	return strictyaml.Write(strictyaml.Mapping{{Key: "toolsets", Value: strictyaml.Mapping{{Key: "rules",
		Value: list}}}}, "")
}

func (p *People) mapping() strictyaml.Mapping {
	return strictyaml.Mapping{
		{Key: "users", Value: p.Users}, {Key: "groups", Value: p.Groups}, {Key: "tenants", Value: p.Tenants},
		{Key: "tokens", Value: p.Tokens},
	}
}

// mapping returns the members that the entry has.
func (t *Tool) mapping() (entry strictyaml.Mapping) {
	add := func(key string, value any, has bool) {
		if has {
			entry = append(entry, strictyaml.Entry{Key: key, Value: value})
		}
	}
	add("tool", t.Pattern, true)
	add("rename", t.Rename, t.Rename != "")
	var fix, description strictyaml.Mapping
	for _, name := range slices.Sorted(maps.Keys(t.Fix)) {
		fix = append(fix, strictyaml.Entry{Key: name, Value: t.Fix[name]})
	}
	for _, language := range slices.Sorted(maps.Keys(t.Description)) {
		if text := t.Description[language]; text != "" {
			description = append(description, strictyaml.Entry{Key: language, Value: text})
		}
	}
	add("fix", fix, len(fix) > 0)
	add("hide", t.Hide, len(t.Hide) > 0)
	add("description", description, len(description) > 0)
	add("short", true, t.Short)
	add("pin", true, t.Pin)
	return entry
}
