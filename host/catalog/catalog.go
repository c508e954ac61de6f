// Package catalog holds all tools, resources, resource templates and prompts that are currently offered, and their
// sources.
//
// A Source is a plugin or an upstream server; its Backend serves the requests. Catalog.Put and Catalog.Remove change
// what is offered, Catalog.View returns an immutable snapshot for lookups, and Catalog.Watch reports changes.
package catalog

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yosida95/uritemplate/v3"

	"github.com/hako-run/hako/host/manifest"
)

// ConflictError means that two sources offer the same name.
type ConflictError struct {
	// Kind is "tool", "prompt", "resource" or "resource template", or "source" for a plugin and an upstream server with
	// one name.
	Kind, Name string
	// Source tried to offer a name that Holder offers already.
	Source, Holder string
}

func (e *ConflictError) Error() string {
	remedy := fmt.Sprintf("remove one of them, or give one a prefix (plugin.%s.prefix in hako.yaml)", e.Source)
	if e.Kind == "source" {
		return fmt.Sprintf(
			"%[1]s is the name of a plugin and of a connected upstream server: rename one of them (mcpServers "+
				"in the file of the upstream servers, name in the plugin's manifest), or disable the server. If hako starts "+
				"with the plugin, the server joins as %[1]s.upstream in policies and records", e.Name)
	}
	if e.Kind != "tool" && e.Kind != "prompt" {
		remedy = "remove one of them"
	}
	return fmt.Sprintf("%s %s is offered by both %s and %s: %s", e.Kind, e.Name, e.Holder, e.Source, remedy)
}

// Catalog holds the current View. It is safe for concurrent use; the zero value is an empty catalog.
type Catalog struct {
	// view is nil if it has not been requested since the last change: filling the catalog builds no views.
	view atomic.Pointer[View]

	// mu guards the fields below and serializes changes.
	mu     sync.Mutex
	offers map[string]*offer
	// holders maps each entry to the name of its source.
	holders  map[entry]string
	watchers map[int]func()
	nextID   int
	// holds counts the open Holds, and unnotified the changes of which the watchers have not been notified.
	holds, unnotified int
}

// View returns the current snapshot.
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

// offer is everything that one source offers.
type offer struct {
	source    *Source
	tools     []*Tool
	resources []*Resource
	templates []*Template
	prompts   []*Prompt
	retired   map[entry]*retired
	// entries are the names and URIs of the offer.
	entries []entry
}

// Put replaces the offer of the source by what m describes. It fails with a *ConflictError, and changes nothing, if
// another source has one of the names, or if one of the old and the new source is a plugin and the other an upstream
// server. m must be valid and must not change afterwards.
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
	c.removeOffer(source.Name)
	if c.offers == nil {
		c.offers, c.holders = map[string]*offer{}, map[entry]string{}
	}
	c.offers[source.Name] = added
	for _, e := range added.entries {
		c.holders[e] = source.Name
	}
	c.notify()
	return nil
}

// Resolved reports whether the conflict of a failed Put has ended: no other source offers the name any more.
func (c *Catalog) Resolved(e *ConflictError) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == "source" {
		_, taken := c.offers[e.Name]
		return !taken
	}
	_, taken := c.holders[entry{e.Kind, e.Name}]
	return !taken
}

// removeOffer removes the offer of a source. mu is held.
func (c *Catalog) removeOffer(source string) {
	offered, ok := c.offers[source]
	if !ok {
		return
	}
	for _, e := range offered.entries {
		delete(c.holders, e)
	}
	delete(c.offers, source)
}

// Remove removes the offer of a source.
func (c *Catalog) Remove(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.offers[source]; ok {
		c.removeOffer(source)
		c.notify()
	}
}

// Watch calls changed after every change, less often during a Hold, until stop is called. changed must be quick and
// must not change the catalog.
func (c *Catalog) Watch(changed func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = map[int]func(){}
	}
	id := c.nextID
	c.nextID++
	c.watchers[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, id)
	}
}

// Hold begins a series of changes, which ends when release is called, once. Until then watchers are notified only each
// time the catalog has changed by half, because what they do takes as long as the catalog is large. View returns each
// change at once.
func (c *Catalog) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.holds--; c.holds == 0 && c.unnotified > 0 {
			c.notifyWatchers()
		}
	}
}

// notify discards the view, and notifies the watchers unless a Hold delays that. mu is held.
func (c *Catalog) notify() {
	c.view.Store(nil)
	c.unnotified++
	if c.holds == 0 || 2*c.unnotified > len(c.offers) {
		c.notifyWatchers()
	}
}

// notifyWatchers builds the new view, which the watchers will read, and calls them. mu is held.
func (c *Catalog) notifyWatchers() {
	c.unnotified = 0
	if len(c.watchers) == 0 {
		return
	}
	c.view.Store(newView(c.offers))
	for _, changed := range c.watchers {
		changed()
	}
}

func newOffer(source *Source, m *manifest.Manifest) (*offer, error) {
	o := &offer{source: source, retired: map[entry]*retired{}}
	addEntry := func(kind, text string) { o.entries = append(o.entries, entry{kind, text}) }
	for i := range m.Tools {
		spec := &m.Tools[i]
		o.tools = append(o.tools, &Tool{Source: source, Name: source.Prefix + spec.Name, Spec: spec})
		addEntry("tool", source.Prefix+spec.Name)
	}
	for i := range m.Resources {
		o.resources = append(o.resources, &Resource{source, &m.Resources[i]})
		addEntry("resource", m.Resources[i].URI)
	}
	for i := range m.ResourceTemplates {
		spec := &m.ResourceTemplates[i]
		uri, err := uritemplate.New(spec.URITemplate)
		if err != nil {
			return nil, fmt.Errorf("resource template %s: %w", spec.URITemplate, err)
		}
		o.templates = append(o.templates, &Template{source, spec, uri})
		addEntry("resource template", spec.URITemplate)
	}
	for i := range m.Prompts {
		o.prompts = append(o.prompts, &Prompt{source, source.Prefix + m.Prompts[i].Name, &m.Prompts[i]})
		addEntry("prompt", source.Prefix+m.Prompts[i].Name)
	}
	for _, r := range m.Retired {
		o.retired[retiredEntry(source, r)] = &retired{source, r.Instead}
	}
	return o, nil
}

func retiredEntry(source *Source, r manifest.Retired) entry {
	switch {
	case r.Tool != "":
		return entry{"tool", source.Prefix + r.Tool}
	case r.Prompt != "":
		return entry{"prompt", source.Prefix + r.Prompt}
	}
	return entry{"resource", r.Resource}
}
