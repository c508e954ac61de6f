package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/frontend/connection"
)

// frontendCounters counts MCP requests.
type frontendCounters struct {
	requests *prometheus.HistogramVec
	refused  *prometheus.CounterVec

	bound bound[requestKind, prometheus.Observer]
}

// requestKind has the labels of a request.
type requestKind struct{ mode, method string }

func newFrontendCounters(r *registry) *frontendCounters {
	c := &frontendCounters{
		requests: r.histogram("hako_mcp_request_duration_seconds",
			"Duration of MCP requests until the response was sent, by mode of the protocol (session, "+
				"stateless) and method.",
			durationBuckets, "mode", "method"),
		refused: r.counter("hako_mcp_requests_refused_total",
			"Refused MCP requests over HTTP, by reason.", "reason"),
	}
	c.bound.bind = func(kind requestKind) (prometheus.Observer, bool) {
		return c.requests.WithLabelValues(kind.mode, kind.method), true
	}
	return c
}

// RequestAnswered counts an MCP request.
func (m *Metrics) RequestAnswered(mode, method string, took time.Duration) {
	seriesOf(m, &m.frontend.bound, requestKind{mode, method}).Observe(took.Seconds())
}

// RequestRefused counts a refused MCP request.
func (m *Metrics) RequestRefused(reason string) { m.frontend.refused.WithLabelValues(reason).Inc() }

// ShowFrontend adds the load of the MCP server. reasons are the reasons for refusing requests.
func (m *Metrics) ShowFrontend(load func() connection.Load, reasons []string) {
	for _, reason := range reasons {
		m.frontend.refused.WithLabelValues(reason) // starts at zero, so that the first one is an increase
	}
	for name, g := range map[string]struct {
		help string
		of   func(connection.Load) int
	}{
		"hako_mcp_requests_in_flight": {"MCP requests over HTTP in flight.",
			func(l connection.Load) int { return l.Requests }},
		"hako_mcp_streams":  {"Open subscription streams.", func(l connection.Load) int { return l.Streams }},
		"hako_mcp_sessions": {"Open MCP sessions over HTTP.", func(l connection.Load) int { return l.Sessions }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: g.help}, func() float64 {
			return float64(g.of(load()))
		}))
	}
}
