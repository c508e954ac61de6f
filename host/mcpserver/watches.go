package mcpserver

import "github.com/hako-run/hako/host/catalog"

// maxWatched bounds the resources of backends that are watched for subscribers, tenants counted apart.
const maxWatched = 4096

// watch is a resource with subscribers.
type watch struct {
	tenant, uri string
	subscribers int
	// by is the backend that was asked to send notifications of changes, until stop is called; nil if there is none.
	by   catalog.Subscriber
	stop func()
}

// subscribed counts a subscriber of a topic, until unsubscribed is called. The first one makes the backend of the
// resource send notifications, if it is a catalog.Subscriber (an upstream server). The caller holds mu.
func (t *subscriptions) subscribed(name string) {
	w := t.watches[name]
	if w == nil {
		w = &watch{tenant: tenantIn(name), uri: uriOf(name)}
		t.watches[name] = w
		t.ask(w, t.subscriberOf(w.uri))
	}
	w.subscribers++
}

// unsubscribed ends the watch with its last subscriber. The caller holds mu.
func (t *subscriptions) unsubscribed(topics ...string) {
	for _, name := range topics {
		w := t.watches[name]
		if w == nil {
			continue
		}
		if w.subscribers--; w.subscribers == 0 {
			delete(t.watches, name)
			t.ask(w, nil)
		}
	}
}

// ask makes another backend send notifications, or none. The caller holds mu.
func (t *subscriptions) ask(w *watch, by catalog.Subscriber) {
	if w.by != nil {
		w.stop()
		w.by = nil
		t.asked--
	}
	if by != nil && t.asked < maxWatched {
		w.by, w.stop = by, by.Subscribe(w.uri, func() { t.updated(w.tenant, w.uri) })
		t.asked++
	}
}

// subscriberOf returns the backend of the resource if it is a catalog.Subscriber, or nil.
func (t *subscriptions) subscriberOf(uri string) catalog.Subscriber {
	view := t.server.catalog.View()
	if resource, ok := view.Resource(uri); ok {
		by, _ := resource.Source.Backend.(catalog.Subscriber)
		return by
	}
	if template, _, ok := view.Template(uri); ok {
		by, _ := template.Source.Backend.(catalog.Subscriber)
		return by
	}
	return nil
}

// unwatch ends all watches.
func (t *subscriptions) unwatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.watches {
		t.ask(w, nil)
	}
	clear(t.watches)
}

// rewatch subscribes at backends that have replaced others.
func (t *subscriptions) rewatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.watches {
		if by := t.subscriberOf(w.uri); by != nil && by != w.by { // a removed backend may return
			t.ask(w, by)
		}
	}
}
