// Package catalog knows everything on offer now: tools, resources, resource templates and prompts, and who serves them.
package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/yosida95/uritemplate/v3"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Backend serves what a source offers. *sandbox.Plugin is one.
type Backend interface {
	// Call serves one request. It neither changes nor keeps the Invocation.
	Call(ctx context.Context, invocation *Invocation) (*abi.Response, error)
}

// Invocation is one request on its way to a Backend, and on whose behalf.
type Invocation struct {
	// Request has the source's own Name.
	Request *abi.Request
	// Limits override the backend's; what is zero leaves them in force.
	Limits manifest.Limits
	// Progress receives reports during the call, one at a time. It may be nil.
	Progress func(abi.Progress)
	// Updated receives, after the call and however that ended, the URIs of resources that have changed, each once, as the backend has
	// them: nothing about them is checked. It may be nil.
	Updated func(uri string)
	// Tenant is the caller's; "" is that of callers without one. Nothing of one tenant may reach another.
	Tenant string
	// Session tells the caller's session from all others of the tenant. Empty means that there is none.
	Session string
}

// Source is who offers something: a plugin, or later an upstream server.
type Source struct {
	// Name is unique among the sources.
	Name string
	// Prefix is put in front of the names of tools and prompts at the doors. It may be empty.
	Prefix string
	// Config is passed along with every request, as JSON.
	Config []byte
	// Tenants hold what is passed instead of Config for callers of a tenant, by tenant.
	Tenants map[string][]byte
	Backend Backend
}

// ConfigFor returns the configuration for callers of the tenant.
func (s *Source) ConfigFor(tenant string) []byte {
	if config, ok := s.Tenants[tenant]; ok {
		return config
	}
	return s.Config
}

// Tool is one tool on offer.
type Tool struct {
	Source *Source
	// Name is the one at the doors: the source's prefix and the tool's own name, which is in Spec.
	Name string
	Spec *manifest.Tool
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
	// Name is the one at the doors.
	Name string
	Spec *manifest.Prompt
}

// View is the catalog at one moment. It does not change; lists are sorted by name or URI.
type View struct {
	Tools     []*Tool
	Resources []*Resource
	Templates []*Template
	Prompts   []*Prompt

	retired   map[retiredName]*retired
	tools     map[string]*Tool
	resources map[string]*Resource
	prompts   map[string]*Prompt
}

// Tool returns the tool with this name at the doors.
func (v *View) Tool(name string) (*Tool, bool) { return lookup(v.tools, name) }

// Prompt returns the prompt with this name at the doors.
func (v *View) Prompt(name string) (*Prompt, bool) { return lookup(v.prompts, name) }

// Resource returns the resource with this URI.
func (v *View) Resource(uri string) (*Resource, bool) { return lookup(v.resources, uri) }

// Template returns the first template, by its text, that uri matches, and the values of its variables. A URI that the template's
// source has retired does not count.
func (v *View) Template(uri string) (*Template, map[string]string, bool) {
	old := v.retired[retiredName{"resource", uri}]
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

// Serves reports whether the source serves the resource with this URI, by itself or by a template.
func (v *View) Serves(source, uri string) bool {
	if resource, ok := v.Resource(uri); ok {
		return resource.Source.Name == source
	}
	return slices.ContainsFunc(v.Templates, func(t *Template) bool {
		return t.Source.Name == source && t.uri.Match(uri) != nil
	})
}

// Instead returns what a source says to use instead of a name that it has retired. kind is "tool", "prompt" or "resource". Names on
// offer come first: ask for those that are not.
func (v *View) Instead(kind, name string) (manifest.Text, bool) {
	old, ok := v.retired[retiredName{kind, name}]
	if !ok {
		return nil, false
	}
	return old.instead, true
}

// retiredName is a kind as in ConflictError, and a name at the doors or a URI.
type retiredName struct{ kind, name string }

type retired struct {
	source  *Source
	instead manifest.Text
}

func lookup[T any](table map[string]T, name string) (T, bool) {
	found, ok := table[name]
	return found, ok
}

// ConflictError says that two sources offer the same name.
type ConflictError struct {
	// Kind is "tool", "prompt", "resource" or "resource template".
	Kind, Name string
	// Source wanted to offer what Holder offers already.
	Source, Holder string
}

func (e *ConflictError) Error() string {
	remedy := fmt.Sprintf("remove one of them, or give one a prefix (plugin.%s.prefix in hako.yaml)", e.Source)
	if e.Kind != "tool" && e.Kind != "prompt" {
		remedy = "remove one of them"
	}
	return fmt.Sprintf("%s %s is offered by both %s and %s: %s", e.Kind, e.Name, e.Holder, e.Source, remedy)
}

// Catalog holds the current View. It is safe for concurrent use; the zero value is an empty catalog.
type Catalog struct {
	view atomic.Pointer[View]

	// mu guards what follows and serialises changes.
	mu      sync.Mutex
	offers  map[string]*offer
	watches map[int]func()
	nextID  int
}

// View returns the catalog as it is now.
func (c *Catalog) View() *View {
	if view := c.view.Load(); view != nil {
		return view
	}
	return &View{}
}

// offer is what one source has in the catalog.
type offer struct {
	tools     []*Tool
	resources []*Resource
	templates []*Template
	prompts   []*Prompt
	retired   map[retiredName]*retired
}

// Put offers what m describes, instead of what a source of the same name offered before. It fails with a *ConflictError if
// another source has one of the names; then nothing changes. m must be valid and must not change afterwards.
func (c *Catalog) Put(source Source, m *manifest.Manifest) error {
	added, err := newOffer(&source, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	offers := maps.Clone(c.offers)
	if offers == nil {
		offers = map[string]*offer{}
	}
	delete(offers, source.Name)
	if err := added.conflict(newView(offers), source.Name); err != nil {
		return err
	}
	offers[source.Name] = added
	c.replace(offers)
	return nil
}

// Remove takes everything that the source offers out of the catalog.
func (c *Catalog) Remove(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.offers[source]; !ok {
		return
	}
	offers := maps.Clone(c.offers)
	delete(offers, source)
	c.replace(offers)
}

// Watch calls changed after every change, until the returned function is called. changed must be quick and must not change
// the catalog.
func (c *Catalog) Watch(changed func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches == nil {
		c.watches = map[int]func(){}
	}
	id := c.nextID
	c.nextID++
	c.watches[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, id)
	}
}

func (c *Catalog) replace(offers map[string]*offer) {
	c.offers = offers
	c.view.Store(newView(offers))
	for _, changed := range c.watches {
		changed()
	}
}

func newOffer(source *Source, m *manifest.Manifest) (*offer, error) {
	o := &offer{retired: map[retiredName]*retired{}}
	for i := range m.Tools {
		spec := &m.Tools[i]
		o.tools = append(o.tools, &Tool{source, source.Prefix + spec.Name, spec})
	}
	for i := range m.Resources {
		o.resources = append(o.resources, &Resource{source, &m.Resources[i]})
	}
	for i := range m.ResourceTemplates {
		spec := &m.ResourceTemplates[i]
		uri, err := uritemplate.New(spec.URITemplate)
		if err != nil {
			return nil, fmt.Errorf("resource template %s: %w", spec.URITemplate, err)
		}
		o.templates = append(o.templates, &Template{source, spec, uri})
	}
	for i := range m.Prompts {
		o.prompts = append(o.prompts, &Prompt{source, source.Prefix + m.Prompts[i].Name, &m.Prompts[i]})
	}
	for _, r := range m.Retired {
		o.retired[nameOf(source, r)] = &retired{source, r.Instead}
	}
	return o, nil
}

func nameOf(source *Source, r manifest.Retired) retiredName {
	switch {
	case r.Tool != "":
		return retiredName{"tool", source.Prefix + r.Tool}
	case r.Prompt != "":
		return retiredName{"prompt", source.Prefix + r.Prompt}
	}
	return retiredName{"resource", r.Resource}
}

// conflict finds a name of o that view has already.
func (o *offer) conflict(view *View, source string) error {
	for _, tool := range o.tools {
		if held, ok := view.Tool(tool.Name); ok {
			return &ConflictError{"tool", tool.Name, source, held.Source.Name}
		}
	}
	for _, prompt := range o.prompts {
		if held, ok := view.Prompt(prompt.Name); ok {
			return &ConflictError{"prompt", prompt.Name, source, held.Source.Name}
		}
	}
	for _, resource := range o.resources {
		if held, ok := view.Resource(resource.Spec.URI); ok {
			return &ConflictError{"resource", resource.Spec.URI, source, held.Source.Name}
		}
	}
	for _, template := range o.templates {
		for _, held := range view.Templates {
			if held.Spec.URITemplate == template.Spec.URITemplate {
				return &ConflictError{"resource template", template.Spec.URITemplate, source, held.Source.Name}
			}
		}
	}
	return nil
}

func newView(offers map[string]*offer) *View {
	v := &View{retired: map[retiredName]*retired{}, tools: map[string]*Tool{}, resources: map[string]*Resource{}, prompts: map[string]*Prompt{}}
	for _, name := range slices.Sorted(maps.Keys(offers)) { // the order decides who answers for a name that several have retired
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
	slices.SortFunc(v.Templates, func(a, b *Template) int { return cmp.Compare(a.Spec.URITemplate, b.Spec.URITemplate) })
	return v
}

func sorted[T any](table map[string]T) []T {
	list := make([]T, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		list = append(list, table[name])
	}
	return list
}
