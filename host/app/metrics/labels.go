package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/catalog"
)

const (
	// maxNames bounds the names used as labels, of all plugins and upstream servers together.
	maxNames = 5000
	// retention is the time for which the series of removed plugins and names are kept, so that their last values are
	// scraped.
	retention = 5 * time.Minute
	// otherName is the label for names beyond maxNames.
	otherName = "other"
)

// offered identifies an entry of the catalog with series.
type offered struct{ plugin, name string }

// labels tracks the names with series and since when they are gone from the catalog. Catalogs of upstream servers
// change, so without it series would accumulate.
type labels struct {
	mu   sync.RWMutex
	gone map[offered]time.Time // zero: in the catalog
}

// name returns the label for name: otherName if there are too many.
func (l *labels) name(plugin, name string) string {
	key := offered{plugin, name}
	l.mu.RLock()
	_, ok := l.gone[key]
	l.mu.RUnlock()
	if ok {
		return name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gone) >= maxNames {
		return otherName
	}
	l.gone[key] = time.Time{}
	return name
}

// sweep records what is gone from the catalog, and removes and returns what has been gone for retention. Entries of
// onOffer with an empty name are plugins.
func (l *labels) sweep(now time.Time, onOffer map[offered]bool) (old []offered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range onOffer {
		if _, ok := l.gone[key]; key.name == "" && !ok {
			l.gone[key] = time.Time{}
		}
	}
	for key, since := range l.gone {
		switch {
		case onOffer[key] || key == offered{}:
			l.gone[key] = time.Time{}
		case since.IsZero():
			l.gone[key] = now
		case now.Sub(since) >= retention:
			delete(l.gone, key)
			old = append(old, key)
		}
	}
	return old
}

// sweep removes the series of plugins and names that are gone, and allows new exemplars.
func (m *Metrics) sweep(now time.Time) {
	m.binding.Lock() // no series may be bound between forgetting and removing
	defer m.binding.Unlock()
	m.calls.bound.series.Clear()
	m.sandbox.bound.series.Clear()
	if m.offers == nil {
		return
	}
	for _, key := range m.labels.sweep(now, m.offers()) {
		match := prometheus.Labels{"plugin": key.plugin, "name": key.name}
		vectors := []vector{m.calls.total, m.calls.duration}
		if key.name == "" {
			match, vectors = prometheus.Labels{"plugin": key.plugin}, m.registry.plugins
		}
		for _, v := range vectors {
			v.DeletePartialMatch(match)
		}
	}
}

// onOffer lists the entries of the catalog and their sources.
func onOffer(view *catalog.View) map[offered]bool {
	all := map[offered]bool{}
	add := func(source *catalog.Source, name string) {
		all[offered{source.Name, ""}], all[offered{source.Name, name}] = true, true
	}
	for _, tool := range view.Tools {
		add(tool.Source, tool.Name)
	}
	for _, prompt := range view.Prompts {
		add(prompt.Source, prompt.Name)
	}
	for _, resource := range view.Resources {
		add(resource.Source, resource.Spec.URI)
	}
	for _, template := range view.Templates {
		add(template.Source, template.Spec.URITemplate)
	}
	return all
}
