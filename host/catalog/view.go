package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/yosida95/uritemplate/v3"

	"github.com/hako-run/hako/host/manifest"
)

// Tool is one tool on offer.
type Tool struct {
	Source *Source
	// Name is the source's prefix and the tool's own name, which is in Spec.
	Name string
	Spec *manifest.Tool
	// Origin is the tool that a toolset offers in this form; nil for a tool of the catalog.
	Origin *Tool
}

// Real returns the tool of the catalog.
func (t *Tool) Real() *Tool {
	if t.Origin != nil {
		return t.Origin
	}
	return t
}

// Hints returns the annotations on which decisions may be based: none for an untrusted source, which may claim anything
// (MCP, tools, tool annotations). Clients see those in Spec.
func (t *Tool) Hints() manifest.Annotations {
	if t.Source.Untrusted {
		return manifest.Annotations{}
	}
	return t.Spec.Annotations
}

// Resource is one resource on offer.
type Resource struct {
	Source *Source
	Spec   *manifest.Resource
}

// Template is one resource template on offer.
type Template struct {
	Source *Source
	Spec   *manifest.ResourceTemplate
	uri    *uritemplate.Template
}

// Prompt is one prompt on offer.
type Prompt struct {
	Source *Source
	// Name is the source's prefix and the prompt's own name, which is in Spec.
	Name string
	Spec *manifest.Prompt
}

// View is an immutable snapshot of the catalog. Lists are sorted by name or URI.
type View struct {
	Tools     []*Tool
	Resources []*Resource
	Templates []*Template
	Prompts   []*Prompt

	// Deferred has the tools that Listing left out of Tools.
	Deferred []*Tool

	// Selected reports whether Select made the view.
	Selected bool

	retired   map[entry]*retired
	tools     map[string]*Tool
	resources map[string]*Resource
	prompts   map[string]*Prompt
}

// Tool returns the tool with this name.
func (v *View) Tool(name string) (*Tool, bool) { return lookup(v.tools, name) }

// Prompt returns the prompt with this name.
func (v *View) Prompt(name string) (*Prompt, bool) { return lookup(v.prompts, name) }

// Resource returns the resource with this URI.
func (v *View) Resource(uri string) (*Resource, bool) { return lookup(v.resources, uri) }

// Template returns the first template, in the order of their texts, that matches uri, and the values of its variables.
// A template is skipped if its source has retired the URI.
func (v *View) Template(uri string) (*Template, map[string]string, bool) {
	old := v.retired[entry{"resource", uri}]
	for _, template := range v.Templates {
		values := template.uri.Match(uri)
		if values == nil || old != nil && old.source == template.Source {
			continue
		}
		variables := map[string]string{}
		for name, value := range values {
			variables[name] = value.String()
		}
		return template, variables, true
	}
	return nil, nil, false
}

// Serves reports whether the source serves the resource with this URI, directly or by a template.
func (v *View) Serves(source, uri string) bool {
	if resource, ok := v.Resource(uri); ok {
		return resource.Source.Name == source
	}
	template, _, ok := v.Template(uri)
	return ok && template.Source.Name == source
}

// Select returns a view with these entries only. Names and URIs are unique. It knows no retired names of tools and
// prompts.
func (v *View) Select(tools []*Tool, resources []*Resource, templates []*Template, prompts []*Prompt) *View {
	selected := &View{retired: map[entry]*retired{}, tools: map[string]*Tool{}, resources: map[string]*Resource{},
		prompts: map[string]*Prompt{}, Templates: templates, Selected: true}
	for _, tool := range tools {
		selected.tools[tool.Name] = tool
	}
	for _, resource := range resources {
		selected.resources[resource.Spec.URI] = resource
	}
	for _, prompt := range prompts {
		selected.prompts[prompt.Name] = prompt
	}
	for name, old := range v.retired {
		if name.kind == "resource" {
			selected.retired[name] = old
		}
	}
	selected.Tools, selected.Resources, selected.Prompts = sorted(selected.tools), sorted(selected.resources),
		sorted(selected.prompts)
	return selected
}

// Listing returns the view with another list of tools. Those that it leaves out are in Deferred, and can still be
// looked up by name.
func (v *View) Listing(tools []*Tool) *View {
	listing := *v
	listing.Selected, listing.tools = true, maps.Clone(v.tools)
	listed := map[string]*Tool{}
	for _, tool := range tools {
		listing.tools[tool.Name], listed[tool.Name] = tool, tool
	}
	listing.Tools, listing.Deferred = sorted(listed), nil
	for _, tool := range v.Tools {
		if listed[tool.Name] == nil {
			listing.Deferred = append(listing.Deferred, tool)
		}
	}
	return &listing
}

// Instead returns the recommendation of a source for a name that it has retired. kind is "tool", "prompt" or
// "resource". It does not check whether the name is offered again.
func (v *View) Instead(kind, name string) (manifest.Text, bool) {
	old, ok := v.retired[entry{kind, name}]
	if !ok {
		return nil, false
	}
	return old.instead, true
}

// entry is a kind as in ConflictError and a name or URI in the catalog.
type entry struct{ kind, name string }

type retired struct {
	source  *Source
	instead manifest.Text
}

func lookup[T any](table map[string]T, name string) (T, bool) {
	found, ok := table[name]
	return found, ok
}

func newView(offers map[string]*offer) *View {
	v := &View{retired: map[entry]*retired{}, tools: map[string]*Tool{}, resources: map[string]*Resource{},
		prompts: map[string]*Prompt{}}
	for _, name := range slices.Sorted(maps.Keys(offers)) { // sorted, because several sources may retire one name
		o := offers[name]
		for _, tool := range o.tools {
			v.tools[tool.Name] = tool
		}
		for _, resource := range o.resources {
			v.resources[resource.Spec.URI] = resource
		}
		for _, prompt := range o.prompts {
			v.prompts[prompt.Name] = prompt
		}
		v.Templates = append(v.Templates, o.templates...)
		for name, old := range o.retired {
			if _, taken := v.retired[name]; !taken {
				v.retired[name] = old
			}
		}
	}
	v.Tools = sorted(v.tools)
	v.Resources = sorted(v.resources)
	v.Prompts = sorted(v.prompts)
	slices.SortFunc(v.Templates, func(a, b *Template) int {
		return cmp.Compare(a.Spec.URITemplate,
			b.Spec.URITemplate)
	})
	return v
}

func sorted[T any](table map[string]T) []T {
	list := make([]T, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list = append(list, table[name])
	}
	return list
}
