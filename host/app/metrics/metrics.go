// Package metrics defines hako's Prometheus metrics.
//
// New returns Metrics. Its methods implement the observer interfaces of other packages, its Show methods add collectors
// of their state, and Handler serves a scrape. docs/metrics.md lists all metrics; a test compares the two. Label values
// come from the catalog and from fixed sets, never from clients, so that clients cannot create series.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// durationBuckets follow the OpenTelemetry semantic conventions for mcp.server.operation.duration, in seconds.
var durationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// Metrics counts calls and shows the state of a host. It is safe for concurrent use.
type Metrics struct {
	registry *registry
	calls    *callCounters
	govern   governCounters
	brokers  brokerCounters
	sandbox  *sandboxCounters
	frontend *frontendCounters
	slack    slackCounters
	chat     chatCounters
	agent    agentCounters
	renewals *prometheus.CounterVec

	labels labels
	// binding is held while series are bound or removed.
	binding sync.Mutex
	// offers lists the catalog; nil before Show.
	offers func() map[offered]bool
}

// New returns Metrics with the program's version in hako_build_info.
func New(version string) *Metrics {
	r := &registry{Registry: prometheus.NewRegistry()}
	m := &Metrics{
		registry: r,
		calls:    newCallCounters(r),
		govern:   newGovernCounters(r),
		brokers:  newBrokerCounters(r),
		sandbox:  newSandboxCounters(r),
		frontend: newFrontendCounters(r),
		slack:    newSlackCounters(r),
		chat:     newChatCounters(r),
		agent:    newAgentCounters(r),
		renewals: r.counter("hako_credential_renewals_total",
			"Attempts to get a new access token, by credential and outcome.", "credential", "outcome"),
		labels: labels{gone: map[offered]time.Time{}},
	}
	m.calls.bound.bind = m.bindCall
	r.MustRegister(buildInfo(version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func buildInfo(version string) prometheus.Gauge {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "hako_build_info",
		Help:        "Always 1; the labels identify the build.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// Handler serves the metrics in Prometheus text format, or with exemplars in OpenMetrics format if the client accepts
// it.
func (m *Metrics) Handler() http.Handler {
	serve := promhttp.HandlerFor(m.registry,
		promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.sweep(time.Now())
		serve.ServeHTTP(w, r)
	})
}

// maxScrapes bounds concurrent scrapes.
const maxScrapes = 8
