package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/hako-run/hako/host/frontend/agent"
)

var _ agent.Observer = (*Metrics)(nil)

// agentCounters counts requests, calls and sessions of managed agents.
type agentCounters struct {
	requests *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	sessions prometheus.Gauge
	outdated prometheus.Gauge
}

func newAgentCounters(r *registry) agentCounters {
	return agentCounters{
		requests: r.counter("hako_agent_api_requests_total",
			"Requests to the Managed Agents API by operation and result.", "operation", "result"),
		calls: r.histogram("hako_agent_call_duration_seconds",
			"Duration from a managed agent's call to its result, or until no result was needed, by result.",
			turnBuckets, "result"),
		sessions: promauto.With(r).NewGauge(prometheus.GaugeOpts{
			Name: "hako_agent_sessions",
			Help: "Sessions of managed agents that hako follows.",
		}),
		outdated: promauto.With(r).NewGauge(prometheus.GaugeOpts{
			Name: "hako_agent_sessions_outdated",
			Help: "Sessions of managed agents whose tools differ from hako's.",
		}),
	}
}

// AgentRequest counts a request to the API.
func (m *Metrics) AgentRequest(operation, result string) {
	m.agent.requests.WithLabelValues(operation, result).Inc()
}

// AgentCall counts an ended call.
func (m *Metrics) AgentCall(result string, took time.Duration) {
	m.agent.calls.WithLabelValues(result).Observe(took.Seconds())
}

// AgentSessions adds n to the number of followed sessions.
func (m *Metrics) AgentSessions(n int) { m.agent.sessions.Add(float64(n)) }

// AgentOutdated adds n to the number of sessions whose tools differ from hako's.
func (m *Metrics) AgentOutdated(n int) { m.agent.outdated.Add(float64(n)) }
