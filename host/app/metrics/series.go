package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bound caches the series of label combinations, because looking them up by labels is slow. Reading takes no lock.
type bound[K comparable, S any] struct {
	series sync.Map // K to S
	bind   func(K) (series S, keep bool)
}

// seriesOf returns the series of key. New ones are bound under the lock of sweep, so that no removed series is cached.
func seriesOf[K comparable, S any](m *Metrics, b *bound[K, S], key K) S {
	if series, ok := b.series.Load(key); ok {
		return series.(S)
	}
	m.binding.Lock()
	defer m.binding.Unlock()
	series, keep := b.bind(key)
	if keep {
		b.series.Store(key, series)
	}
	return series
}

// timings is a histogram with durationBuckets and exemplars. Each bucket gets only the first exemplar since the last
// scrape: a scrape shows one per bucket, and an exemplar costs more than all other metrics of a call.
type timings struct {
	histogram prometheus.Observer
	shown     atomic.Uint32 // a bit for each bucket with an exemplar
}

// observe records a duration with the ID of its trace, which may be empty.
func (t *timings) observe(took time.Duration, trace string) {
	if trace != "" {
		bucket, _ := slices.BinarySearch(durationBuckets, took.Seconds())
		bit := uint32(1) << bucket
		if t.shown.Load()&bit != 0 || t.shown.Or(bit)&bit != 0 {
			trace = ""
		}
	}
	observe(t.histogram, took, trace)
}

// observe records a duration with the ID of its trace, which may be empty.
func observe(o prometheus.Observer, took time.Duration, trace string) {
	if with, ok := o.(prometheus.ExemplarObserver); ok && trace != "" {
		with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	o.Observe(took.Seconds())
}
