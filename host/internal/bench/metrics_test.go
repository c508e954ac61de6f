package bench

import (
	"slices"
	"testing"

	"github.com/hako-run/hako/host/metrics"
)

// Throughput is measured with and without metrics in turns, each first as often as the other, because the machine is not the same all the
// time; and with several pairs of hosts, because two hosts that are the same differ by some percent for as long as they live, by where their
// memory happens to lie.
const (
	metricsPairs  = 5
	metricsRounds = 8
)

// metrics measures what counting costs: the throughput of a call that does next to nothing, with metrics against without.
func (r *results) metrics(t *testing.T) {
	var ratios []float64
	for pair := range metricsPairs {
		t.Run("pair", func(t *testing.T) { ratios = append(ratios, metricsRatios(t, pair%2 == 1)...) })
	}
	slices.Sort(ratios)
	n := len(ratios)
	r.add(t, "metrics_throughput_ratio", (ratios[(n-1)/2]+ratios[n/2])/2, "on/off")
}

// metricsRatios are those of the rounds of one pair of hosts. offFirst says which one is started first.
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
		return load(t, url, eras[0], clients, "echo", arguments, want, *duration/8).perSecond
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
