package metrics

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/govern/results"
)

// ShowResults shows how many results of tools are kept. Replicas that share a database all show the same ones.
func (m *Metrics) ShowResults(k *results.Keeper) {
	show := func(name, help string, of func(count int, bytes int64) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			count, bytes, err := k.Size(ctx)
			if err != nil {
				return math.NaN()
			}
			return of(count, bytes)
		}))
	}
	show("hako_results_kept", "Stored tool results that were too large to return at once.",
		func(count int, _ int64) float64 { return float64(count) })
	show("hako_results_kept_bytes", "Size of the stored tool results, in bytes.",
		func(_ int, bytes int64) float64 { return float64(bytes) })
}
