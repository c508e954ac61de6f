package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// registry creates and registers metrics.
type registry struct {
	*prometheus.Registry
	// plugins are the vectors with a label "plugin".
	plugins []vector
}

// vector is a metric vector from which series can be removed.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

func (r *registry) add(v vector, labels []string) {
	r.MustRegister(v)
	if slices.Contains(labels, "plugin") {
		r.plugins = append(r.plugins, v)
	}
}

func (r *registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.add(v, labels)
	return v
}

func (r *registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.add(v, labels)
	return v
}

func (r *registry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.add(v, labels)
	return v
}
