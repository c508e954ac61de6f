package metrics

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host"
)

var memoryKindDesc = prometheus.NewDesc("hako_memory_bytes",
	"Memory of the process by kind: heap is Go's objects and garbage, free is what Go keeps for more, runtime is its "+
		"stacks and tables, plugins is code and memory of plugins, program is the resident part of files (Linux).",
	[]string{"kind"}, nil)

// goMemory lists the classes of Go's memory in each kind (runtime/metrics).
var goMemory = map[string][]string{
	"heap": {"/memory/classes/heap/objects:bytes"},
	"free": {"/memory/classes/heap/free:bytes", "/memory/classes/heap/unused:bytes"},
	"runtime": {"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes",
		"/memory/classes/metadata/mcache/free:bytes", "/memory/classes/metadata/mcache/inuse:bytes",
		"/memory/classes/metadata/mspan/free:bytes", "/memory/classes/metadata/mspan/inuse:bytes",
		"/memory/classes/metadata/other:bytes", "/memory/classes/other:bytes",
		"/memory/classes/profiling/buckets:bytes"},
}

// memoryCollector measures memory at every scrape.
type memoryCollector struct{ host *host.Host }

func (c *memoryCollector) Describe(out chan<- *prometheus.Desc) { out <- memoryKindDesc }

func (c *memoryCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(kind string, bytes uint64) {
		out <- prometheus.MustNewConstMetric(memoryKindDesc, prometheus.GaugeValue, float64(bytes), kind)
	}
	for kind, classes := range goMemory {
		samples, sum := make([]metrics.Sample, len(classes)), uint64(0)
		for i, class := range classes {
			samples[i].Name = class
		}
		metrics.Read(samples)
		for _, sample := range samples {
			if sample.Value.Kind() == metrics.KindUint64 {
				sum += sample.Value.Uint64()
			}
		}
		gauge(kind, sum)
	}
	used, _ := c.host.Memory()
	gauge("plugins", uint64(used))
	if bytes, ok := residentFiles(); ok {
		gauge("program", bytes)
	}
}

// residentFiles returns the resident memory that maps files, such as the program. Only Linux reports it.
func residentFiles() (bytes uint64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "RssFile:"); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
