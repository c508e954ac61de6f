package mcpserver

import "github.com/hako-run/hako/host/catalog"

// maxTold bounds the resources of backends that are watched for subscribers, tenants counted apart.
const maxTold = 4096

// told is a resource that its backend tells of.
type told struct {
	tenant, uri string
	by          catalog.Teller
	stop        func()
}

// watch asks the backend of a resource to tell of it, if that does not by itself: upstream servers have to be asked. It goes on until the
// server ends, for clients come back.
func (t *subscriptions) watch(tenant, uri string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := topic(tenant, uri)
	if _, known := t.tellers[name]; t.closed || known || len(t.tellers) >= maxTold {
		return
	}
	if by := t.teller(uri); by != nil {
		t.tellers[name] = told{tenant, uri, by, by.Subscribe(uri, func() { t.updated(tenant, uri) })}
	}
}

// teller is the backend of the resource, if it is one that has to be asked.
func (t *subscriptions) teller(uri string) catalog.Teller {
	view := t.server.catalog.View()
	if resource, ok := view.Resource(uri); ok {
		by, _ := resource.Source.Backend.(catalog.Teller)
		return by
	}
	if template, _, ok := view.Template(uri); ok {
		by, _ := template.Source.Backend.(catalog.Teller)
		return by
	}
	return nil
}

// unwatch has nobody told any more.
func (t *subscriptions) unwatch() {
	t.mu.Lock()
	list := t.tellers
	t.tellers = nil
	t.mu.Unlock()
	for _, told := range list {
		told.stop()
	}
}

// rewatch asks the backends that have taken the place of others.
func (t *subscriptions) rewatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, was := range t.tellers {
		by := t.teller(was.uri)
		if by == nil || by == was.by { // what has gone may come back
			continue
		}
		was.stop()
		was.by, was.stop = by, by.Subscribe(was.uri, func() { t.updated(was.tenant, was.uri) })
		t.tellers[name] = was
	}
}
