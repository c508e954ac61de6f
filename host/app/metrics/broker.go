package metrics

import (
	"cmp"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
)

// brokerCounters counts the use of permissions by plugins.
type brokerCounters struct {
	requests, responseBytes, attempts *prometheus.CounterVec
	statements, commands              *prometheus.CounterVec
	connections, connectionBytes      *prometheus.CounterVec

	requestDuration, statementDuration, commandDuration *prometheus.HistogramVec
}

func newBrokerCounters(r *registry) brokerCounters {
	return brokerCounters{
		requests: r.counter("hako_http_requests_total",
			"HTTP requests of plugins by permission, outcome (a class of status codes, or the code of an "+
				"error) and source of the response.",
			"plugin", "permission", "outcome", "source"),
		requestDuration: r.histogram("hako_http_request_duration_seconds",
			"Duration of plugins' HTTP requests until the response was read, including redirects, retries and waiting "+
				"for the rate limit.",
			durationBuckets, "plugin", "permission"),
		responseBytes: r.counter("hako_http_response_bytes_total",
			"Decompressed bytes of responses that plugins read.", "plugin", "permission"),
		attempts: r.counter("hako_http_attempts_total",
			"Requests sent for plugins' HTTP requests, retries, redirects and revalidations "+
				"included.",
			"plugin", "permission"),
		statements: r.counter("hako_sql_statements_total",
			"Operations on plugins' databases by function and outcome (ok, or the code of an error).",
			"plugin", "function", "outcome"),
		statementDuration: r.histogram("hako_sql_statement_duration_seconds",
			"Duration of operations on plugins' databases, including waiting for locks.", statementBuckets, "plugin",
			"function"),
		commands: r.counter("hako_commands_total",
			"Commands of plugins, by granted program and outcome.", "plugin", "program", "outcome"),
		commandDuration: r.histogram("hako_command_duration_seconds",
			"Duration of plugins' commands, including the wait for approval.",
			commandBuckets, "plugin", "program"),
		connections: r.counter("hako_command_connections_total",
			"Connections of plugins' commands, by grant (empty where none applied) and outcome.",
			"plugin", "grant", "outcome"),
		connectionBytes: r.counter("hako_command_connection_bytes_total",
			"Bytes that plugins' commands sent and received over connections.", "plugin", "grant", "direction"),
	}
}

var _ host.RequestObserver = (*Metrics)(nil)

// RequestEnded counts an HTTP request of a plugin.
func (m *Metrics) RequestEnded(plugin string, o httpbroker.Observation) {
	m.brokers.requests.WithLabelValues(plugin, o.Rule, requestOutcome(o), o.Source).Inc()
	observe(m.brokers.requestDuration.WithLabelValues(plugin, o.Rule), o.Duration, o.TraceID)
	m.brokers.responseBytes.WithLabelValues(plugin, o.Rule).Add(float64(o.Bytes))
	m.brokers.attempts.WithLabelValues(plugin, o.Rule).Add(float64(o.Tries))
}

// requestOutcome is a class of status codes such as "2xx", or the error code that the guest received.
func requestOutcome(o httpbroker.Observation) string {
	switch {
	case o.Code != "":
		return o.Code
	case o.Status >= 100 && o.Status <= 599:
		return fmt.Sprintf("%dxx", o.Status/100)
	}
	return "other"
}

var _ host.StatementObserver = (*Metrics)(nil)

// statementBuckets are for durations mostly below a millisecond, in seconds.
var statementBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30}

// StatementEnded counts a statement of a plugin.
func (m *Metrics) StatementEnded(plugin string, o sqlbroker.Observation) {
	m.brokers.statements.WithLabelValues(plugin, o.Function, cmp.Or(o.Code, "ok")).Inc()
	observe(m.brokers.statementDuration.WithLabelValues(plugin, o.Function), o.Duration, o.TraceID)
}

var _ host.CommandObserver = (*Metrics)(nil)

// commandBuckets are for the durations of processes, in seconds.
var commandBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// CommandEnded counts a command of a plugin.
func (m *Metrics) CommandEnded(plugin string, o execbroker.Observation) {
	m.brokers.commands.WithLabelValues(plugin, o.Program, o.Outcome).Inc()
	observe(m.brokers.commandDuration.WithLabelValues(plugin, o.Program), o.Duration, o.TraceID)
}

// ConnectionEnded counts a connection of a plugin's command.
func (m *Metrics) ConnectionEnded(plugin string, o gateway.Observation) {
	m.brokers.connections.WithLabelValues(plugin, o.Rule, o.Outcome).Inc()
	m.brokers.connectionBytes.WithLabelValues(plugin, o.Rule, "sent").Add(float64(o.Sent))
	m.brokers.connectionBytes.WithLabelValues(plugin, o.Rule, "received").Add(float64(o.Received))
}
