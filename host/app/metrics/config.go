package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ShowReloads adds the time and the result of the last load of the configuration, including the one at the start. last
// returns them; ok means that it was applied.
func (m *Metrics) ShowReloads(last func() (at time.Time, ok bool)) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hako_config_reload_success",
			Help: "1 if the last configuration read is in force, 0 if it has an error and the previous one stays.",
		}, func() float64 {
			if _, ok := last(); ok {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hako_config_reload_timestamp_seconds",
			Help: "Unix time at which the configuration was last read.",
		}, func() float64 {
			at, _ := last()
			return float64(at.UnixMilli()) / 1000
		}),
	)
}
