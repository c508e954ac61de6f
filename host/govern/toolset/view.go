package toolset

import (
	"fmt"
	"slices"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/toolpattern"
)

// View is the part of a snapshot of the catalog that a set offers. It is immutable.
type View struct {
	*catalog.View
	// Problems say what of the set is not offered, and why: patterns that match nothing, and tools that do not fit.
	Problems []string
	// Entries are the entries of the set by the name of the tool that they offer. The host's own tools need none.
	Entries map[string]*Tool
	forms   map[string]*form
}

// Pinned reports whether the tool that is offered under the name stays in the list where others are searched for.
func (v *View) Pinned(name string) bool {
	entry := v.Entries[name]
	return entry != nil && entry.Pin
}

// Apply returns what the set offers, and what the host itself offers unless the set excepts it. A nil Set offers
// nothing.
//
// A tool that cannot be offered as the set says is left out, and named in Problems: if it lacks an argument that the
// set fixes or hides, if it requires a hidden argument, or if its name is taken.
func (s *Set) Apply(of *catalog.View) *View {
	if s == nil {
		return &View{View: of.Select(nil, nil, nil, nil)}
	}
	v := &View{forms: map[string]*form{}, Entries: map[string]*Tool{}}
	tools := v.applyTools(s, of)
	resources, used := matching(s.Resources, of.Resources, func(r *catalog.Resource) string { return r.Spec.URI })
	templates, more := matching(s.Resources, of.Templates,
		func(t *catalog.Template) string { return t.Spec.URITemplate })
	for pattern := range more {
		used[pattern] = true
	}
	v.unused("resource", s.Resources, used)
	for _, template := range of.Templates {
		if template.Source.Own && !slices.Contains(templates, template) {
			templates = append(templates, template)
		}
	}
	prompts, used := matching(s.Prompts, of.Prompts, func(p *catalog.Prompt) string { return p.Name })
	v.unused("prompt", s.Prompts, used)
	v.View = of.Select(tools, resources, templates, prompts)
	return v
}

// applyTools returns the offered tools, those of earlier entries first.
func (v *View) applyTools(s *Set, of *catalog.View) (offered []*catalog.Tool) {
	matchers := make([]toolpattern.Pattern, len(s.Tools))
	for i := range s.Tools {
		matchers[i] = toolpattern.Compile(s.Tools[i].Pattern)
	}
	except := make([]toolpattern.Pattern, len(s.Except))
	for i, pattern := range s.Except {
		except[i] = toolpattern.Compile(pattern)
	}
	matched := make([][]*catalog.Tool, len(s.Tools))
	excepted := map[string]bool{}
	for _, tool := range of.Tools {
		full := tool.Source.Name + "/" + tool.Name
		matches := func(p toolpattern.Pattern) bool { return p.MatchesTool(tool.Name, full) }
		if i := slices.IndexFunc(except, matches); i >= 0 {
			excepted[s.Except[i]] = true
		} else if i := slices.IndexFunc(matchers, matches); i >= 0 {
			matched[i] = append(matched[i], tool)
		} else if tool.Source.Own {
			offered = append(offered, tool)
		}
	}
	v.unused("tool, for except", s.Except, excepted)
	for i := range s.Tools {
		entry := &s.Tools[i]
		if len(matched[i]) == 0 {
			v.problem("%s matches no tool, or only tools of earlier entries", entry.Pattern)
		}
		for _, tool := range matched[i] {
			if shaped := v.shape(entry, tool); shaped != nil {
				offered = append(offered, shaped)
				v.Entries[shaped.Name] = entry
			}
		}
	}
	return offered
}

// shape returns the tool as the entry offers it, or nil if it cannot.
func (v *View) shape(entry *Tool, tool *catalog.Tool) *catalog.Tool {
	name := tool.Name
	if entry.Rename != "" {
		name = entry.Rename
	}
	if taken := v.forms[name]; taken != nil {
		v.problem("%s is left out: %s is offered as %s already", tool.Name, taken.tool, name)
		return nil
	}
	shape, err := newForm(entry, tool)
	if err != nil {
		v.problem("%s is left out: %v", tool.Name, err)
		return nil
	}
	v.forms[name] = shape
	if name == tool.Name && shape.schema == nil && len(entry.Description) == 0 && !entry.Short {
		return tool
	}
	spec := *tool.Spec
	if shape.schema != nil {
		spec.InputSchema = shape.schema
	}
	switch {
	case len(entry.Description) > 0:
		spec.Description = entry.Description
	case entry.Short:
		spec.Description = manifest.FirstSentence(tool.Spec.Description)
	}
	return &catalog.Tool{Source: tool.Source, Name: name, Spec: &spec, Origin: tool}
}

func (v *View) problem(format string, values ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, values...))
}

// unused notes the patterns that are not used.
func (v *View) unused(kind string, patterns []string, used map[string]bool) {
	for _, pattern := range patterns {
		if !used[pattern] {
			v.problem("%s matches no %s", pattern, kind)
		}
	}
}

// matching returns the entries whose names match one of the patterns, and the patterns that match one.
func matching[T any](patterns []string, list []T, name func(T) string) (found []T, used map[string]bool) {
	used = map[string]bool{}
	for _, entry := range list {
		hit := false
		for _, text := range patterns {
			if p := toolpattern.Compile(text); p.Matches(name(entry)) {
				hit, used[text] = true, true
			}
		}
		if hit {
			found = append(found, entry)
		}
	}
	return found, used
}
