package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host"
)

// Show adds the state of h: its plugins and their instances. It must be called only once.
func (m *Metrics) Show(h *host.Host) {
	m.offers = func() map[offered]bool { return onOffer(h.Catalog().View()) }
	m.registry.MustRegister(&hostCollector{h}, &memoryCollector{h})
}

var (
	pluginsDesc = prometheus.NewDesc("hako_plugins", "Plugins found, by state.", []string{"state"}, nil)
	pluginDesc  = prometheus.NewDesc("hako_plugin_info",
		"Always 1; the labels identify the version of a plugin in service.",
		[]string{"plugin", "version", "digest"}, nil)
	sandboxDesc = prometheus.NewDesc("hako_sandbox_calls",
		"Calls of a plugin that run in an instance (state running) or wait for one (state waiting).",
		[]string{"plugin", "state"}, nil)
	toolsDesc     = prometheus.NewDesc("hako_tools", "Tools in the catalog.", nil, nil)
	instancesDesc = prometheus.NewDesc("hako_sandbox_instances",
		"Instances of a plugin between calls: ready (state idle), or to be restored first (state used).",
		[]string{"plugin", "state"}, nil)
	interpretedDesc = prometheus.NewDesc("hako_sandbox_interpreted",
		"1 while a plugin's code is not compiled yet and an interpreter runs it.", []string{"plugin"}, nil)
	updateDesc = prometheus.NewDesc("hako_plugin_update_waiting",
		"1 while the version of a plugin in the folder differs from the one in service.", []string{"plugin"}, nil)
	memoryDesc      = prometheus.NewDesc("hako_sandbox_memory_bytes", "Memory that all plugins use together.", nil, nil)
	memoryLimitDesc = prometheus.NewDesc("hako_sandbox_memory_limit_bytes",
		"Memory that all plugins may use together.", nil, nil)
)

// hostCollector reads the host's state at every scrape.
type hostCollector struct{ host *host.Host }

func (c *hostCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		pluginsDesc, pluginDesc, sandboxDesc, toolsDesc, instancesDesc, interpretedDesc, updateDesc,
		memoryDesc, memoryLimitDesc,
	} {
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
			gauge(instancesDesc, plugin.Idle, plugin.Name, "idle")
			gauge(instancesDesc, plugin.Used, plugin.Name, "used")
			gauge(interpretedDesc, truth(plugin.Interpreted), plugin.Name)
			gauge(updateDesc, truth(plugin.Digest != plugin.Serving), plugin.Name)
		}
	}
	for _, state := range host.States {
		gauge(pluginsDesc, states[state], string(state))
	}
	gauge(toolsDesc, len(c.host.Catalog().View().Tools))
	used, limit := c.host.Memory()
	gauge(memoryDesc, int(used))
	gauge(memoryLimitDesc, int(limit))
}

func truth(is bool) int {
	if is {
		return 1
	}
	return 0
}
