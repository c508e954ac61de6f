package bench

import (
	"slices"
	"testing"

	"github.com/hako-run/hako/host/app/metrics"
)

// Throughput is measured with and without metrics alternately, each first equally often, because the machine's load
// changes; and with several pairs of hosts, because two identical hosts differ by some percent for their lifetime,
// depending on their memory layout.
const (
	metricsPairs  = 5
	metricsRounds = 8
)

// metrics compares the throughput of a minimal call with and without metrics.
func (r *results) metrics(t *testing.T) {
	var ratios []float64
	for pair := range metricsPairs {
		t.Run("pair", func(t *testing.T) { ratios = append(ratios, metricsRatios(t, pair%2 == 1)...) })
	}
	slices.Sort(ratios)
	n := len(ratios)
	r.add(t, "metrics_throughput_ratio", (ratios[(n-1)/2]+ratios[n/2])/2, "on/off")
}

// metricsRatios returns the ratios of the rounds of one pair of hosts. offFirst selects the host that is started first.
func metricsRatios(t *testing.T, offFirst bool) (ratios []float64) {
	var on, off string
	start := []func(){
		func() { on = observed(t, metrics.New("bench"), t.TempDir(), echoPlugin(t, "echo", "echo")) },
		func() { off = observed(t, nil, t.TempDir(), echoPlugin(t, "echo", "echo")) },
	}
	if offFirst {
		slices.Reverse(start)
	}
	for _, host := range start {
		host()
	}
	rate := func(url string) float64 {
		const arguments, want, clients = `{"text":"hello from a client"}`, "hello from a client", 64
		return load(t, url, protocolVersions[0], clients, "echo", arguments, want, *duration/8).perSecond
	}
	rate(on)
	rate(off)
	for round := range metricsRounds {
		var with, without float64
		if round%2 == 0 {
			with, without = rate(on), rate(off)
		} else {
			without, with = rate(off), rate(on)
		}
		ratios = append(ratios, with/without)
	}
	return ratios
}
