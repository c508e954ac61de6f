package main

// ofPlugin are the labels of what one plugin does.
const ofPlugin = `@, plugin=~"$plugin"`

func plugins() *dashboard {
	return &dashboard{
		name: "hako-plugin", title: "hako / Plugin",
		about:     "One plugin, or upstream server: its calls, and what it does with its permissions.",
		variables: []variable{{"plugin", "Plugin", `label_values(hako_calls_total{job=~"$job", plugin!=""}, plugin)`}},
		rows: []row{
			{"Calls", []panel{
				stat("Calls", "Calls a second.", "reqps", `sum(rate(hako_calls_total{`+ofPlugin+
					`}[$__rate_interval]))`),
				stat("Failing", "Share of calls that failed for reasons that are not the caller's.", "percentunit",
					`sum(rate(hako_calls_total{`+ofPlugin+`, `+failing+
						`}[$__rate_interval])) / sum(rate(hako_calls_total{`+ofPlugin+`}[$__rate_interval]))`),
				stat("Slow calls (p95)", "19 of 20 calls are faster than this.", "s",
					`histogram_quantile(0.95, sum by (le) (rate(hako_call_duration_seconds_bucket{`+ofPlugin+
						`}[$__rate_interval])))`),
				stat("Running", "Calls in an instance now.", "short", `sum(hako_sandbox_calls{`+ofPlugin+
					`, state="running"})`),
				stat("Waiting", "Calls that wait for an instance.", "short", `sum(hako_sandbox_calls{`+ofPlugin+
					`, state="waiting"})`),
				stat("Updates waiting",
					"Versions in the folder that are not in service: hako plugin list shows the reason.",
					"short", `sum(hako_plugin_update_waiting{`+ofPlugin+`})`),
				stack("Calls by outcome", "What became of calls.", "reqps",
					q("{{outcome}}", `sum by (outcome) (rate(hako_calls_total{`+ofPlugin+`}[$__rate_interval]))`)),
				stack("Calls by tool", "What is called: tools, resources, prompts.", "reqps",
					q("{{name}}", `sum by (name) (rate(hako_calls_total{`+ofPlugin+`}[$__rate_interval]))`)),
				quantiles("Duration of calls", "From arrival to answer, waiting included.",
					"hako_call_duration_seconds_bucket{"+ofPlugin+"}", "plugin"),
				quantiles("Waiting in the queue",
					"Until a call could run. limits.concurrency bounds how many do at once.",
					"hako_sandbox_queue_seconds_bucket{"+ofPlugin+"}", "plugin"),
				lines("Bytes", "Arguments (in) and results (out).", "Bps",
					q("{{plugin}} {{direction}}", `sum by (plugin, direction) (rate(hako_call_bytes_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				table("In service", "Which version is in service, by its digest.",
					`max by (plugin, version, digest) (hako_plugin_info{`+ofPlugin+`})`),
			}},
			{"HTTP", []panel{
				stack("Requests by outcome", "By class of status, or the error that the plugin got.", "reqps",
					q("{{permission}} {{outcome}}", `sum by (permission, outcome) (rate(hako_http_requests_total{`+
						ofPlugin+`}[$__rate_interval]))`)),
				quantiles("Duration of requests", "With redirects, retries and waiting for the rate.",
					"hako_http_request_duration_seconds_bucket{"+ofPlugin+"}", "permission"),
				lines("Requests and attempts", "More attempts than requests are retries, redirects and revalidations.",
					"reqps",
					q("{{permission}} requests", `sum by (permission) (rate(hako_http_requests_total{`+ofPlugin+
						`}[$__rate_interval]))`),
					q("{{permission}} attempts", `sum by (permission) (rate(hako_http_attempts_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				stack("Where answers come from", "The network, the cache, or recordings.", "reqps",
					q("{{source}}", `sum by (source) (rate(hako_http_requests_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				lines("Bytes read", "Of answers, decompressed.", "Bps",
					q("{{permission}}", `sum by (permission) (rate(hako_http_response_bytes_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
			}},
			{"Credentials", []panel{
				stack("Renewals", "Attempts to get a new access token, of all plugins.", "reqps",
					q("{{credential}} {{outcome}}",
						`sum by (credential, outcome) (rate(hako_credential_renewals_total{@}[$__rate_interval]))`)),
				lines("State", "Credentials by state. For reconnect somebody has to run hako connect.", "short",
					q("{{credential}} {{state}}", `sum by (credential, state) (hako_credentials{@})`)),
			}},
			{"Databases and commands", []panel{
				stack("Statements", "Uses of the plugin's database, by function and outcome.", "ops",
					q("{{function}} {{outcome}}", `sum by (function, outcome) (rate(hako_sql_statements_total{`+
						ofPlugin+`}[$__rate_interval]))`)),
				quantiles("Duration of statements", "Waiting for locks included.",
					"hako_sql_statement_duration_seconds_bucket{"+ofPlugin+"}", "function"),
				stack("Commands", "By program and outcome.", "ops",
					q("{{program}} {{outcome}}", `sum by (program, outcome) (rate(hako_commands_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				quantiles("Duration of commands", "Time in which a person was asked included.",
					"hako_command_duration_seconds_bucket{"+ofPlugin+"}", "program"),
				stack("Connections of commands", "By grant (empty where none applied) and outcome.", "ops",
					q("{{grant}} {{outcome}}", `sum by (grant, outcome) (rate(hako_command_connections_total{`+ofPlugin+
						`}[$__rate_interval]))`)),
				stack("Bytes of commands' connections", "By grant and direction.", "Bps",
					q("{{grant}} {{direction}}", `sum by (grant, direction) (rate(hako_command_connection_bytes_total{`+
						ofPlugin+`}[$__rate_interval]))`)),
			}},
			{"Upstream servers", []panel{
				lines("Connected", "1 while an upstream server is connected, or idle until its next call.", "short",
					q("{{server}}", `max by (server) (hako_upstream_up{@})`)),
				lines("Restarts", "How often it was started or connected again in the last hour.", "short",
					q("{{server}}", `sum by (server) (increase(hako_upstream_restarts_total{@}[1h]))`)),
			}},
		},
	}
}
