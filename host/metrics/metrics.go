// Package metrics holds every Prometheus name of hako. docs/metrics.md lists them; a test compares the two.
//
// Labels come from the catalog and from fixed sets, never from what a client sent, so that nobody can flood them.
package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// durationBuckets are those that the OpenTelemetry semantic conventions for MCP advise for mcp.server.operation.duration, in
// seconds.
var durationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// Metrics counts calls and shows the state of a host. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	running  *prometheus.GaugeVec

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec

	renewals *prometheus.CounterVec

	decisions *prometheus.CounterVec
	approvals *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	secrets   *prometheus.CounterVec

	slack slackCounters
	chat  chatCounters

	statements        *prometheus.CounterVec
	statementDuration *prometheus.HistogramVec
	commands          *prometheus.CounterVec
	commandDuration   *prometheus.HistogramVec
}

var _ pipeline.Observer = (*Metrics)(nil)

// New returns Metrics with the program's version in hako_build_info.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		slack:    newSlackCounters(),
		chat:     newChatCounters(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_calls_total",
			Help: "Calls by method, name in the catalog, plugin, door and outcome. Name and plugin are empty for what is not in the catalog.",
		}, []string{"method", "name", "plugin", "door", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hako_call_duration_seconds",
			Help:    "Time from a call's arrival to its answer, waiting included.",
			Buckets: durationBuckets,
		}, []string{"method", "name", "plugin"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_call_bytes_total",
			Help: "Bytes of arguments (direction in) and results (direction out).",
		}, []string{"plugin", "direction"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hako_calls_in_flight",
			Help: "Calls between arrival and answer.",
		}, []string{"method"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_http_requests_total",
			Help: "HTTP requests of plugins by permission, outcome (a class of status codes, or the code of an error) and source of the answer.",
		}, []string{"plugin", "permission", "outcome", "source"}),
		requestDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hako_http_request_duration_seconds",
			Help:    "Time of a plugin's HTTP request until its answer was read, with redirects, retries and waiting for the rate limit.",
			Buckets: durationBuckets,
		}, []string{"plugin", "permission"}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_credential_renewals_total",
			Help: "Attempts to get a new access token, by credential and outcome.",
		}, []string{"credential", "outcome"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_policy_decisions_total",
			Help: "Decisions of the policy by action and rule.",
		}, []string{"action", "rule"}),
		approvals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_approvals_total",
			Help: "Questions to people by what became of them.",
		}, []string{"outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_quota_refusals_total",
			Help: "Calls that were refused because a quota was used up.",
		}, []string{"quota"}),
		secrets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_secrets_found_total",
			Help: "Secrets found by rule, place (arguments, results, logs) and what became of them (report, mask, refuse).",
		}, []string{"rule", "place", "action"}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_sql_statements_total",
			Help: "Uses of plugins' databases by function and outcome (ok, or the code of an error).",
		}, []string{"plugin", "function", "outcome"}),
		statementDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hako_sql_statement_duration_seconds",
			Help:    "Time of one use of a plugin's database, waiting for locks included.",
			Buckets: statementBuckets,
		}, []string{"plugin", "function"}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_commands_total",
			Help: "Commands of plugins, by granted program and outcome.",
		}, []string{"plugin", "program", "outcome"}),
		commandDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hako_command_duration_seconds",
			Help:    "Duration of plugins' commands, time in which a person was asked included.",
			Buckets: commandBuckets,
		}, []string{"plugin", "program"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "hako_build_info",
		Help:        "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.registry.MustRegister(m.calls, m.duration, m.bytes, m.running, m.requests, m.requestDuration, m.renewals, m.decisions, m.approvals, m.refusals, m.secrets, m.statements, m.statementDuration, m.commands, m.commandDuration, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.slack.register(m.registry)
	m.chat.register(m.registry)
	return m
}

// CallStarted counts a call in.
func (m *Metrics) CallStarted(method string) { m.running.WithLabelValues(known(method)).Inc() }

// CallEnded counts a call out.
func (m *Metrics) CallEnded(r pipeline.Record) {
	method := known(r.Method)
	m.running.WithLabelValues(method).Dec()
	m.calls.WithLabelValues(method, r.Name, r.Source, r.Caller.Door, string(r.Outcome)).Inc()
	m.duration.WithLabelValues(method, r.Name, r.Source).Observe(r.Duration.Seconds())
	m.bytes.WithLabelValues(r.Source, "in").Add(float64(r.Input))
	m.bytes.WithLabelValues(r.Source, "out").Add(float64(r.Output))
	m.governed(r)
	for _, f := range r.Findings {
		m.SecretFound(f)
	}
}

// known is method if it is one of the pipeline's, and "other" for anything else.
func known(method string) string {
	switch method {
	case abi.CallTool, abi.ReadResource, abi.GetPrompt, abi.Complete:
		return method
	}
	return "other"
}

// Show adds the state of h: its plugins and their instances.
func (m *Metrics) Show(h *host.Host) { m.registry.MustRegister(&hostCollector{h}) }

// Handler serves the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

var (
	pluginsDesc = prometheus.NewDesc("hako_plugins", "Plugins found, by state.", []string{"state"}, nil)
	pluginDesc  = prometheus.NewDesc("hako_plugin_info", "Always 1; the labels say which version of a plugin is in service.",
		[]string{"plugin", "version", "digest"}, nil)
	sandboxDesc = prometheus.NewDesc("hako_sandbox_calls", "Calls of a plugin that run in an instance (state running) or wait for one (state waiting).",
		[]string{"plugin", "state"}, nil)
	toolsDesc = prometheus.NewDesc("hako_tools", "Tools on offer.", nil, nil)
)

// hostCollector reads the host's state at every scrape.
type hostCollector struct{ host *host.Host }

func (c *hostCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{pluginsDesc, pluginDesc, sandboxDesc, toolsDesc} {
		out <- desc
	}
}

func (c *hostCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	states := map[host.State]int{}
	for _, plugin := range c.host.Plugins() {
		states[plugin.State]++
		if plugin.Serving != "" {
			gauge(pluginDesc, 1, plugin.Name, plugin.Version, plugin.Serving)
			gauge(sandboxDesc, plugin.Running, plugin.Name, "running")
			gauge(sandboxDesc, plugin.Waiting, plugin.Name, "waiting")
		}
	}
	for _, state := range host.States {
		gauge(pluginsDesc, states[state], string(state))
	}
	gauge(toolsDesc, len(c.host.Catalog().View().Tools))
}
