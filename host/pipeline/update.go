package pipeline

import (
	"maps"
	"slices"
	"sync"
)

// updates are those who want to know of changed resources. The zero value is ready.
type updates struct {
	mu      sync.Mutex
	watches map[int]func(tenant, uri string)
	nextID  int
}

// WatchUpdates calls updated for every resource of a tenant's that a call has changed, until the returned function is called. The
// resource is on offer, by its URI or a template. updated is called concurrently, before the answer to the call has left, and must be
// quick.
func (p *Pipeline) WatchUpdates(updated func(tenant, uri string)) (stop func()) {
	u := &p.updates
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watches == nil {
		u.watches = map[int]func(tenant, uri string){}
	}
	id := u.nextID
	u.nextID++
	u.watches[id] = updated
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.watches, id)
	}
}

// updated passes on that a resource has changed, if it is one of the source's own.
func (p *Pipeline) updated(source, tenant, uri string) {
	if !p.catalog.View().Serves(source, uri) {
		p.options.Logger.Debug("a resource changed that the plugin does not offer", "plugin", source)
		return
	}
	p.updates.mu.Lock()
	watches := slices.Collect(maps.Values(p.updates.watches))
	p.updates.mu.Unlock()
	for _, updated := range watches {
		updated(tenant, uri)
	}
}
