package main

// ofTool are the labels of what happens to one tool.
const ofTool = `@, method="tools/call", name=~"$tool"`

func tools() *dashboard {
	return &dashboard{
		name: "hako-tool", title: "hako / Tool", about: "One tool, or several side by side.",
		variables: []variable{{"tool", "Tool",
			`label_values(hako_calls_total{job=~"$job", method="tools/call", name!=""}, name)`}},
		rows: []row{
			{"Tool", []panel{
				stat("Calls", "Calls a second.", "reqps", `sum(rate(hako_calls_total{`+ofTool+`}[$__rate_interval]))`),
				stat("Failing", "Share of calls that failed for reasons that are not the caller's.", "percentunit",
					`sum(rate(hako_calls_total{`+ofTool+`, `+failing+
						`}[$__rate_interval])) / sum(rate(hako_calls_total{`+ofTool+`}[$__rate_interval]))`),
				stat("Denied", "Share of calls that the policy or a person did not allow.", "percentunit",
					`sum(rate(hako_calls_total{`+ofTool+
						`, outcome="not_allowed"}[$__rate_interval])) / sum(rate(hako_calls_total{`+ofTool+
						`}[$__rate_interval]))`),
				stat("Wrong arguments",
					"Share of calls with arguments that the tool's schema refuses: its description may mislead models.",
					"percentunit",
					`sum(rate(hako_calls_total{`+ofTool+
						`, outcome="invalid_arguments"}[$__rate_interval])) / sum(rate(hako_calls_total{`+ofTool+
						`}[$__rate_interval]))`),
				stat("Median", "Half of the calls are faster than this.", "s",
					`histogram_quantile(0.5, sum by (le) (rate(hako_call_duration_seconds_bucket{`+ofTool+
						`}[$__rate_interval])))`),
				stat("Slow calls (p99)", "99 of 100 calls are faster than this.", "s",
					`histogram_quantile(0.99, sum by (le) (rate(hako_call_duration_seconds_bucket{`+ofTool+
						`}[$__rate_interval])))`),
				stack("Calls by outcome", "What became of calls.", "reqps",
					q("{{outcome}}", `sum by (outcome) (rate(hako_calls_total{`+ofTool+`}[$__rate_interval]))`)),
				stack("Calls by tool and frontend", "Who calls it.", "reqps",
					q("{{name}} {{frontend}}", `sum by (name, frontend) (rate(hako_calls_total{`+ofTool+
						`}[$__rate_interval]))`)),
				quantiles("Duration", "From arrival to answer, waiting for a place or for people included.",
					"hako_call_duration_seconds_bucket{"+ofTool+"}", "name"),
				heat("How long calls take", "Each column is a moment; the darker, the more calls took so long.",
					`sum by (le) (increase(hako_call_duration_seconds_bucket{`+ofTool+`}[$__rate_interval]))`),
				lines("Failing share", "By tool.", "percentunit",
					q("{{name}}", `sum by (name) (rate(hako_calls_total{`+ofTool+`, `+failing+
						`}[$__rate_interval])) / sum by (name) (rate(hako_calls_total{`+ofTool+
						`}[$__rate_interval]))`)),
				ranked("Calls in the range", "By tool and outcome, over the time that is shown.", "short",
					"{{name}} {{outcome}}", `sort_desc(sum by (name, outcome) (increase(hako_calls_total{`+ofTool+
						`}[$__range])))`),
			}},
		},
	}
}
