package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/sandbox"
)

var _ sandbox.Observer = (*Metrics)(nil)

// Buckets in seconds: for queues, for operations on instances, and for compilation.
var (
	queueBuckets    = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30}
	instanceBuckets = []float64{0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
		0.01, 0.05, 0.1, 1}
	compileBuckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
)

// sandboxCounters counts operations on the code and the instances of plugins.
type sandboxCounters struct {
	queue, compile, made, restore *prometheus.HistogramVec
	closed, steps                 *prometheus.CounterVec

	bound bound[string, *sandboxSeries]
}

// sandboxSeries has a plugin's series that every call updates.
type sandboxSeries struct{ queue, restore prometheus.Observer }

func newSandboxCounters(r *registry) *sandboxCounters {
	c := &sandboxCounters{
		queue: r.histogram("hako_sandbox_queue_seconds",
			"Duration for which calls waited for an instance.", queueBuckets, "plugin"),
		compile: r.histogram("hako_sandbox_compile_seconds",
			"Duration until a plugin's code was ready, by source (compiler, cache, interpreter).",
			compileBuckets, "how"),
		made: r.histogram("hako_sandbox_instance_start_seconds",
			"Duration of instantiation, by method (start, image).", instanceBuckets, "plugin", "how"),
		restore: r.histogram("hako_sandbox_restore_seconds",
			"Duration of restoring an instance after a call.", instanceBuckets, "plugin"),
		closed: r.counter("hako_sandbox_instances_closed_total",
			"Discarded instances, by reason.", "plugin", "reason"),
		steps: r.counter("hako_sandbox_steps_total",
			"Metered steps of guests: function entries and loop iterations.", "plugin"),
	}
	c.bound.bind = func(plugin string) (*sandboxSeries, bool) {
		return &sandboxSeries{c.queue.WithLabelValues(plugin), c.restore.WithLabelValues(plugin)}, true
	}
	return c
}

// CallQueued records how long a call waited for an instance.
func (m *Metrics) CallQueued(plugin string, waited time.Duration) {
	seriesOf(m, &m.sandbox.bound, plugin).queue.Observe(waited.Seconds())
}

// CodeLoaded records the compilation or loading of a plugin's code.
func (m *Metrics) CodeLoaded(_, how string, took time.Duration) {
	m.sandbox.compile.WithLabelValues(how).Observe(took.Seconds())
}

// InstanceMade records the instantiation of a plugin.
func (m *Metrics) InstanceMade(plugin, how string, took time.Duration) {
	m.sandbox.made.WithLabelValues(plugin, how).Observe(took.Seconds())
}

// InstanceRestored records the restoration of a used instance.
func (m *Metrics) InstanceRestored(plugin string, took time.Duration) {
	seriesOf(m, &m.sandbox.bound, plugin).restore.Observe(took.Seconds())
}

// InstanceClosed counts a closed instance.
func (m *Metrics) InstanceClosed(plugin, reason string) {
	m.sandbox.closed.WithLabelValues(plugin, reason).Inc()
}
