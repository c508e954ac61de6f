package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bound holds the series that came before, to be found at once instead of label by label. Reading it takes no lock.
type bound[K comparable, S any] struct {
	series sync.Map // K to S
	bind   func(K) (series S, keep bool)
}

// seriesOf returns the series of key. It binds them under the lock of sweep, so that none is kept that is being taken out.
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

// timings are a histogram with durationBuckets and exemplars: of each bucket the first since the last scrape, because a scrape sees one of
// each, and an exemplar costs more than the rest of what is counted for a call.
type timings struct {
	histogram prometheus.Observer
	shown     atomic.Uint32 // a bit for each bucket that has one
}

// observe counts a duration, with the trace that it is an example of. trace may be empty.
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

// observe counts a duration, with the trace that it is an example of. trace may be empty.
func observe(o prometheus.Observer, took time.Duration, trace string) {
	if with, ok := o.(prometheus.ExemplarObserver); ok && trace != "" {
		with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	o.Observe(took.Seconds())
}
