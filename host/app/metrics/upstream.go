package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/upstream/mcpclient"
)

var (
	upstreamUpDesc = prometheus.NewDesc("hako_upstream_up",
		"1 while an upstream MCP server is connected, or idle until its next call, 0 while it is not.",
		[]string{"server"}, nil)
	upstreamIdleDesc = prometheus.NewDesc("hako_upstream_idle",
		"1 while an upstream MCP server is idle and therefore not connected, else 0.", []string{"server"}, nil)
	restartsDesc = prometheus.NewDesc("hako_upstream_restarts_total",
		"Restarts and reconnections of an upstream MCP server.",
		[]string{"server"}, nil)
)

// ShowUpstreams adds the state of upstream servers. Their calls are among those of plugins, under the server's name.
func (m *Metrics) ShowUpstreams(u *mcpclient.Upstreams) {
	m.registry.MustRegister(&upstreamCollector{u})
}

// upstreamCollector reads the state of upstream servers at every scrape.
type upstreamCollector struct{ upstreams *mcpclient.Upstreams }

func (c *upstreamCollector) Describe(out chan<- *prometheus.Desc) {
	out <- upstreamUpDesc
	out <- upstreamIdleDesc
	out <- restartsDesc
}

func (c *upstreamCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.upstreams.Status() {
		if s.State == mcpclient.Disabled {
			continue
		}
		up, idle := 0.0, 0.0
		switch s.State {
		case mcpclient.Up:
			up = 1
		case mcpclient.Idle:
			up, idle = 1, 1
		}
		out <- prometheus.MustNewConstMetric(upstreamUpDesc, prometheus.GaugeValue, up, s.Name)
		out <- prometheus.MustNewConstMetric(upstreamIdleDesc, prometheus.GaugeValue, idle, s.Name)
		out <- prometheus.MustNewConstMetric(restartsDesc, prometheus.CounterValue, float64(s.Restarts), s.Name)
	}
}
