package main

func sandbox() *dashboard {
	return &dashboard{
		name: "hako-sandbox", title: "hako / Sandbox",
		about:     "What guests cost: places, memory, computing, and the making and putting back of instances.",
		variables: []variable{{"plugin", "Plugin", `label_values(hako_plugin_info{job=~"$job"}, plugin)`}},
		rows: []row{
			{"Room", []panel{
				stat("Memory in use", "Share of the memory that all plugins may use together (memoryBudget).",
					"percentunit",
					`max(hako_sandbox_memory_bytes{@} / hako_sandbox_memory_limit_bytes{@})`),
				stat("Running", "Calls in an instance.", "short", `sum(hako_sandbox_calls{`+ofPlugin+
					`, state="running"})`),
				stat("Waiting", "Calls that wait for one.", "short", `sum(hako_sandbox_calls{`+ofPlugin+
					`, state="waiting"})`),
				stat("Idle instances", "Ready for a call.", "short", `sum(hako_sandbox_instances{`+ofPlugin+
					`, state="idle"})`),
				stat("Interpreted", "Plugins whose code is not compiled yet: slower by a factor of ten to thirty.",
					"short", `sum(hako_sandbox_interpreted{`+ofPlugin+`})`),
				stat("Thrown away", "Instances a second that could not be put back after a call.", "ops",
					`sum(rate(hako_sandbox_instances_closed_total{`+ofPlugin+
						`, reason=~"failed|unclean"}[$__rate_interval]))`),
				lines("Memory", "Of guests, images and compiled code.", "bytes",
					q("used {{instance}}", `sum by (instance) (hako_sandbox_memory_bytes{@})`),
					q("limit {{instance}}", `sum by (instance) (hako_sandbox_memory_limit_bytes{@})`)),
				lines("Calls", "That run, and that wait for an instance.", "short",
					q("{{plugin}} {{state}}", `sum by (plugin, state) (hako_sandbox_calls{`+ofPlugin+`})`)),
				quantiles("Waiting in the queue", "Until a call could run.", "hako_sandbox_queue_seconds_bucket{"+
					ofPlugin+"}", "plugin"),
				stack("Limits that ended calls",
					"timeout: limits.time; cpu: limits.cpu; memory: limits.memory; busy: limits.concurrency, queue or rate; trap: the guest broke.", "reqps",
					q("{{plugin}} {{outcome}}", `sum by (plugin, outcome) (rate(hako_calls_total{`+ofPlugin+
						`, outcome=~"timeout|cpu|memory|size|busy|trap"}[$__rate_interval]))`)),
				lines("Computing", "Steps of guests: functions entered and loops repeated.", "ops",
					q("{{plugin}}", `sum by (plugin) (rate(hako_sandbox_steps_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				lines("Steps for a call", "On average.", "short",
					q("{{plugin}}", `sum by (plugin) (rate(hako_sandbox_steps_total{`+ofPlugin+
						`}[$__rate_interval])) / sum by (plugin) (rate(hako_calls_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
			}},
			{"Instances", []panel{
				lines("Instances between calls", "idle: ready; used: to be put back first.", "short",
					q("{{plugin}} {{state}}", `sum by (plugin, state) (hako_sandbox_instances{`+ofPlugin+`})`)),
				stack("Made", "By running their start, or from the image of one that has started.", "ops",
					q("{{how}}", `sum by (how) (rate(hako_sandbox_instance_start_seconds_count{`+ofPlugin+
						`}[$__rate_interval]))`)),
				stack("Closed", "By reason. failed and unclean cost the next call a new one.", "ops",
					q("{{reason}}", `sum by (reason) (rate(hako_sandbox_instances_closed_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				quantiles("Time to make one", "By how it is made.", "hako_sandbox_instance_start_seconds_bucket{"+
					ofPlugin+"}", "how"),
				quantiles("Time to put one back", "After a call, by the next one or in the background.",
					"hako_sandbox_restore_seconds_bucket{"+ofPlugin+"}", ""),
			}},
			{"Code", []panel{
				lines("Made ready", "Plugins whose code was made ready in the last hour.", "short",
					q("{{how}}", `sum by (how) (increase(hako_sandbox_compile_seconds_count{@}[1h]))`)),
				lines("Time to make it ready", "On average since the start.", "s",
					q("{{how}}", `sum by (how) (hako_sandbox_compile_seconds_sum{@}) / sum by (how) (hako_sandbox_compile_seconds_count{@})`)),
				lines("Interpreted", "1 while the interpreter runs a plugin's code.", "short",
					q("{{plugin}}", `max by (plugin) (hako_sandbox_interpreted{`+ofPlugin+`})`)),
				lines("Garbage collection",
					"Share of the time in which the whole process stands still. A guest that does not stop can hold it up.", "percentunit",
					q("{{instance}}", `sum by (instance) (rate(go_gc_duration_seconds_sum{@}[$__rate_interval]))`)),
			}},
		},
	}
}
