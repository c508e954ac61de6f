package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// callCounters counts calls of all methods.
type callCounters struct {
	total, bytes *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	running      *prometheus.GaugeVec

	bound bound[callKind, *callSeries]
	// methods has the pipeline's methods and otherMethod.
	methods map[string]method
}

// method is a method's label with its gauge of calls in flight.
type method struct {
	label   string
	running prometheus.Gauge
}

// callKind has the labels of a call.
type callKind struct{ method, name, plugin, frontend, outcome string }

// callSeries has the series of one callKind.
type callSeries struct {
	total, in, out, steps prometheus.Counter
	duration              timings
}

func newCallCounters(r *registry) *callCounters {
	c := &callCounters{
		total: r.counter("hako_calls_total",
			"Calls by method, name in the catalog, plugin, frontend and outcome. Name and plugin are empty "+
				"for what is not in the catalog.",
			"method", "name", "plugin", "frontend", "outcome"),
		duration: r.histogram("hako_call_duration_seconds",
			"Duration of calls, excluding the wait for people.", durationBuckets,
			"method", "name", "plugin"),
		bytes: r.counter("hako_call_bytes_total",
			"Bytes of arguments (direction in) and results (direction out).", "plugin", "direction"),
		running: r.gauge("hako_calls_in_flight",
			"Calls in flight.", "method"),
		methods: map[string]method{},
	}
	for _, label := range []string{abi.CallTool, abi.ReadResource, abi.GetPrompt, abi.Complete, otherMethod} {
		c.methods[label] = method{label, c.running.WithLabelValues(label)}
	}
	return c
}

var _ pipeline.Observer = (*Metrics)(nil)

// CallStarted counts the start of a call.
func (m *Metrics) CallStarted(r *pipeline.Running) { m.calls.method(r.Method).running.Inc() }

// CallEnded counts the end of a call.
func (m *Metrics) CallEnded(r pipeline.Record) {
	method := m.calls.method(r.Method)
	method.running.Dec()
	series := seriesOf(m, &m.calls.bound, callKind{method.label, r.Name, r.Source, r.Caller.Frontend,
		string(r.Outcome)})
	series.total.Inc()
	series.duration.observe(r.Active(), r.TraceID)
	series.in.Add(float64(r.Input))
	series.out.Add(float64(r.Output))
	series.steps.Add(float64(r.Steps))
	m.governed(r)
	for _, f := range r.Findings {
		m.SecretFound(f)
	}
}

// bindCall looks up the series of a callKind. Names beyond maxNames are counted as otherName and not cached.
func (m *Metrics) bindCall(kind callKind) (*callSeries, bool) {
	c := m.calls
	name := m.labels.name(kind.plugin, kind.name)
	return &callSeries{
		total:    c.total.WithLabelValues(kind.method, name, kind.plugin, kind.frontend, kind.outcome),
		duration: timings{histogram: c.duration.WithLabelValues(kind.method, name, kind.plugin)},
		in:       c.bytes.WithLabelValues(kind.plugin, "in"),
		out:      c.bytes.WithLabelValues(kind.plugin, "out"),
		steps:    m.sandbox.steps.WithLabelValues(kind.plugin),
	}, name == kind.name
}

// otherMethod is the label for methods unknown to the pipeline.
const otherMethod = "other"

// method returns the named method or otherMethod.
func (c *callCounters) method(name string) method {
	if known, ok := c.methods[name]; ok {
		return known
	}
	return c.methods[otherMethod]
}
