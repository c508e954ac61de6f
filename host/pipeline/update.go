package pipeline

import (
	"maps"
	"slices"
	"sync"
)

// updateWatchers are the watchers of changed resources. The zero value is ready.
type updateWatchers struct {
	mu      sync.Mutex
	watches map[int]func(tenant, uri string)
	nextID  int
}

// WatchUpdates calls updated for every resource that a call has changed, with the tenant of the call, until stop is
// called. The catalog has the resource, by its URI or a template. updated is called concurrently, before the response
// is returned, and must be quick.
func (p *Pipeline) WatchUpdates(updated func(tenant, uri string)) (stop func()) {
	u := &p.updateWatchers
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

// notifyUpdated notifies the watchers of a changed resource, if the source offers it.
func (p *Pipeline) notifyUpdated(source, tenant, uri string) {
	if !p.catalog.View().Serves(source, uri) {
		p.options.Logger.Debug("the plugin announced a change of a resource that it does not have", "plugin", source)
		return
	}
	p.updateWatchers.mu.Lock()
	watches := slices.Collect(maps.Values(p.updateWatchers.watches))
	p.updateWatchers.mu.Unlock()
	for _, updated := range watches {
		updated(tenant, uri)
	}
}
