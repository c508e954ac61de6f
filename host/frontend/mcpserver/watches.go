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
func (s *subscriptions) subscribed(name string) {
	w := s.watches[name]
	if w == nil {
		w = &watch{tenant: tenantIn(name), uri: uriOf(name)}
		s.watches[name] = w
		s.ask(w, s.subscriberOf(w.uri))
	}
	w.subscribers++
}

// unsubscribed ends the watch with its last subscriber. The caller holds mu.
func (s *subscriptions) unsubscribed(topics ...string) {
	for _, name := range topics {
		w := s.watches[name]
		if w == nil {
			continue
		}
		if w.subscribers--; w.subscribers == 0 {
			delete(s.watches, name)
			s.ask(w, nil)
		}
	}
}

// ask makes another backend send notifications, or none. The caller holds mu.
func (s *subscriptions) ask(w *watch, by catalog.Subscriber) {
	if w.by != nil {
		w.stop()
		w.by = nil
		s.asked--
	}
	if by != nil && s.asked < maxWatched {
		w.by, w.stop = by, by.Subscribe(w.uri, func() { s.updated(w.tenant, w.uri) })
		s.asked++
	}
}

// subscriberOf returns the backend of the resource if it is a catalog.Subscriber, or nil.
func (s *subscriptions) subscriberOf(uri string) catalog.Subscriber {
	view := s.server.catalog.View()
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
func (s *subscriptions) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		s.ask(w, nil)
	}
	clear(s.watches)
}

// rewatch subscribes at backends that have replaced others.
func (s *subscriptions) rewatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if by := s.subscriberOf(w.uri); by != nil && by != w.by { // a removed backend may return
			s.ask(w, by)
		}
	}
}
