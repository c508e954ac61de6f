package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/results"
)

// ShowResults shows how many results of tools are kept.
func (m *Metrics) ShowResults(k *results.Keeper) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hako_results_kept", Help: "Results of tools that are kept because they were too large to pass on at once.",
		}, func() float64 {
			count, _ := k.Size()
			return float64(count)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hako_results_kept_bytes", Help: "Memory of the kept results, in bytes.",
		}, func() float64 {
			_, bytes := k.Size()
			return float64(bytes)
		}),
	)
}
