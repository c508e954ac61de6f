package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/catalog"
)

const (
	// maxNames bounds how many names there are as labels at once, of all plugins and upstream servers together.
	maxNames = 5000
	// keepTime is how long the series of what is no longer on offer are kept, so that their last values are scraped.
	keepTime = 5 * time.Minute
	// otherName stands for names beyond maxNames.
	otherName = "other"
)

// offered is something of the catalog that has series.
type offered struct{ plugin, name string }

// labels knows which names have series, and since when they are not on offer. What is on offer changes with plugins and with what upstream
// servers say, so without it series would pile up.
type labels struct {
	mu   sync.RWMutex
	gone map[offered]time.Time // zero: on offer
}

// name returns name as a label, or otherName when there are too many.
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

// sweep notes what is no longer on offer and returns what has not been for keepTime, which it forgets. onOffer with an empty name is about
// the plugin itself.
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
		case now.Sub(since) >= keepTime:
			delete(l.gone, key)
			old = append(old, key)
		}
	}
	return old
}

// vector is what series can be taken out of.
type vector interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// ofPlugins notes vectors with a label "plugin".
func (m *Metrics) ofPlugins(vectors ...vector) { m.plugins = append(m.plugins, vectors...) }

// sweep takes out the series of plugins and names that are gone, and makes room for new exemplars.
func (m *Metrics) sweep(now time.Time) {
	m.binding.Lock() // no series is bound between what is forgotten and what is taken out
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
			match, vectors = prometheus.Labels{"plugin": key.plugin}, m.plugins
		}
		for _, v := range vectors {
			v.DeletePartialMatch(match)
		}
	}
}

// onOffer lists what is in the catalog, and who offers it.
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
