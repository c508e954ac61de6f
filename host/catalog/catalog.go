// Package catalog knows everything on offer now: tools, resources, resource templates and prompts, and who serves them.
package catalog

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yosida95/uritemplate/v3"

	"github.com/hako-run/hako/host/manifest"
)

// ConflictError says that two sources offer the same name.
type ConflictError struct {
	// Kind is "tool", "prompt", "resource" or "resource template", or "source" for a plugin and an upstream server with one name.
	Kind, Name string
	// Source wanted to offer what Holder offers already.
	Source, Holder string
}

func (e *ConflictError) Error() string {
	remedy := fmt.Sprintf("remove one of them, or give one a prefix (plugin.%s.prefix in hako.yaml)", e.Source)
	if e.Kind == "source" {
		return fmt.Sprintf("%s is the name of a plugin and of an upstream server: rename one of them", e.Name)
	}
	if e.Kind != "tool" && e.Kind != "prompt" {
		remedy = "remove one of them"
	}
	return fmt.Sprintf("%s %s is offered by both %s and %s: %s", e.Kind, e.Name, e.Holder, e.Source, remedy)
}

// Catalog holds the current View. It is safe for concurrent use; the zero value is an empty catalog.
type Catalog struct {
	// view is nil where it has not been asked for since the last change: filling the catalog makes no views.
	view atomic.Pointer[View]

	// mu guards what follows and serialises changes.
	mu     sync.Mutex
	offers map[string]*offer
	// holders are the sources of all entries.
	holders map[entry]string
	watches map[int]func()
	nextID  int
}

// View returns the catalog as it is now.
func (c *Catalog) View() *View {
	if view := c.view.Load(); view != nil {
		return view
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	view := c.view.Load()
	if view == nil {
		view = newView(c.offers)
		c.view.Store(view)
	}
	return view
}

// offer is what one source has in the catalog.
type offer struct {
	source    *Source
	tools     []*Tool
	resources []*Resource
	templates []*Template
	prompts   []*Prompt
	retired   map[entry]*retired
	// entries are all that it takes.
	entries []entry
}

// Put offers what m describes, instead of what a source of the same name offered before. It fails with a *ConflictError if
// another source has one of the names, or if the source before was a plugin and this one is a server, or the other way round; then
// nothing changes. m must be valid and must not change afterwards.
func (c *Catalog) Put(source Source, m *manifest.Manifest) error {
	added, err := newOffer(&source, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.offers[source.Name]; other != nil && other.source.Upstream != source.Upstream {
		return &ConflictError{"source", source.Name, source.Name, source.Name}
	}
	for _, e := range added.entries {
		if holder, ok := c.holders[e]; ok && holder != source.Name {
			return &ConflictError{e.kind, e.name, source.Name, holder}
		}
	}
	c.take(source.Name)
	if c.offers == nil {
		c.offers, c.holders = map[string]*offer{}, map[entry]string{}
	}
	c.offers[source.Name] = added
	for _, e := range added.entries {
		c.holders[e] = source.Name
	}
	c.tell()
	return nil
}

// take removes what the source offers. mu is held.
func (c *Catalog) take(source string) {
	offered, ok := c.offers[source]
	if !ok {
		return
	}
	for _, e := range offered.entries {
		delete(c.holders, e)
	}
	delete(c.offers, source)
}

// Remove takes everything that the source offers out of the catalog.
func (c *Catalog) Remove(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.offers[source]; ok {
		c.take(source)
		c.tell()
	}
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

// tell ends the view before the change. Where somebody watches, and so will look, the new one takes its place at once. mu is held.
func (c *Catalog) tell() {
	if len(c.watches) == 0 {
		c.view.Store(nil)
		return
	}
	c.view.Store(newView(c.offers))
	for _, changed := range c.watches {
		changed()
	}
}

func newOffer(source *Source, m *manifest.Manifest) (*offer, error) {
	o := &offer{source: source, retired: map[entry]*retired{}}
	take := func(kind, text string) { o.entries = append(o.entries, entry{kind, text}) }
	for i := range m.Tools {
		spec := &m.Tools[i]
		o.tools = append(o.tools, &Tool{source, source.Prefix + spec.Name, spec})
		take("tool", source.Prefix+spec.Name)
	}
	for i := range m.Resources {
		o.resources = append(o.resources, &Resource{source, &m.Resources[i]})
		take("resource", m.Resources[i].URI)
	}
	for i := range m.ResourceTemplates {
		spec := &m.ResourceTemplates[i]
		uri, err := uritemplate.New(spec.URITemplate)
		if err != nil {
			return nil, fmt.Errorf("resource template %s: %w", spec.URITemplate, err)
		}
		o.templates = append(o.templates, &Template{source, spec, uri})
		take("resource template", spec.URITemplate)
	}
	for i := range m.Prompts {
		o.prompts = append(o.prompts, &Prompt{source, source.Prefix + m.Prompts[i].Name, &m.Prompts[i]})
		take("prompt", source.Prefix+m.Prompts[i].Name)
	}
	for _, r := range m.Retired {
		o.retired[nameOf(source, r)] = &retired{source, r.Instead}
	}
	return o, nil
}

func nameOf(source *Source, r manifest.Retired) entry {
	switch {
	case r.Tool != "":
		return entry{"tool", source.Prefix + r.Tool}
	case r.Prompt != "":
		return entry{"prompt", source.Prefix + r.Prompt}
	}
	return entry{"resource", r.Resource}
}
