package main

// failing are the outcomes of calls that somebody should look into: what callers do wrong, or may not, is none of them.
const failing = `outcome=~"tool_error|invalid_result|timeout|cpu|memory|size|busy|trap|internal"`

func overview() *dashboard {
	return &dashboard{
		name: "hako-overview", title: "hako / Overview", about: "What runs, who calls what, and what is slow, failing, denied or waiting for a yes.",
		rows: []row{
			{"Now", []panel{
				stat("Calls", "Calls a second, refused ones included.", "reqps", `sum(rate(hako_calls_total{@}[$__rate_interval]))`),
				stat("Failing", "Share of calls that failed for reasons that are not the caller's: the tool, a limit, or the host.", "percentunit",
					`sum(rate(hako_calls_total{@, `+failing+`}[$__rate_interval])) / sum(rate(hako_calls_total{@}[$__rate_interval]))`),
				stat("Slow calls (p95)", "19 of 20 calls are faster than this.", "s",
					`histogram_quantile(0.95, sum by (le) (rate(hako_call_duration_seconds_bucket{@}[$__rate_interval])))`),
				stat("In flight", "Calls between arrival and answer.", "short", `sum(hako_calls_in_flight{@})`),
				stat("Questions waiting", "Questions to people that have no answer yet.", "short", `max(hako_approvals_waiting{@})`),
				stat("Audit failures", "Events of the last hour that could not be recorded. Unless audit.optional is set, their calls got no answer.", "short",
					`sum(increase(hako_audit_failures_total{@}[1h]))`),
				stat("Plugins in service", "Plugins whose tools can be called.", "short", `max(hako_plugins{@, state="active"})`),
				stat("Plugins that wait", "Plugins that wait for consent: hako plugin list.", "short", `max(hako_plugins{@, state="pending"})`),
				stat("Plugins not usable", "Plugins that are broken or in conflict with another one: hako plugin list says why.", "short",
					`max(sum by (instance) (hako_plugins{@, state=~"broken|conflict"}))`),
				stat("Upstreams down", "Upstream servers that are not connected.", "short", `count(hako_upstream_up{@} == 0) or vector(0) * count(hako_upstream_up{@})`),
				stat("To be reconnected", "Credentials for which somebody has to run hako connect.", "short", `sum(hako_credentials{@, state="reconnect"})`),
				stat("Files not usable", "Processes whose configuration or policy file has an error, so that an earlier one is in force.", "short",
					`sum(hako_policy_file_broken{@}) + count(hako_config_reload_success{@}) - sum(hako_config_reload_success{@})`),
			}},
			{"Calls", []panel{
				stack("Calls by outcome", "What became of calls. docs/metrics.md has the outcomes.", "reqps",
					q("{{outcome}}", `sum by (outcome) (rate(hako_calls_total{@}[$__rate_interval]))`)),
				stack("Calls by door", "Where calls come in.", "reqps", q("{{door}}", `sum by (door) (rate(hako_calls_total{@}[$__rate_interval]))`)),
				quantiles("Duration of calls", "From arrival to answer, waiting included. The points are calls with a trace.", "hako_call_duration_seconds_bucket{@}", ""),
				lines("Bytes of calls", "Arguments (in) and results (out).", "Bps", q("{{direction}}", `sum by (direction) (rate(hako_call_bytes_total{@}[$__rate_interval]))`)),
				ranked("Most called", "The ten tools that are called most.", "reqps", "{{name}}",
					`topk(10, sum by (name) (rate(hako_calls_total{@, name!=""}[$__rate_interval])))`),
				ranked("Most failing", "The ten tools that fail most.", "reqps", "{{name}}",
					`topk(10, sum by (name) (rate(hako_calls_total{@, `+failing+`}[$__rate_interval])))`),
			}},
			{"The MCP door", []panel{
				stack("Requests by method", "Requests and notifications of MCP clients.", "reqps",
					q("{{method}}", `sum by (method) (rate(hako_mcp_request_duration_seconds_count{@}[$__rate_interval]))`)),
				stack("Requests by era", "With sessions (up to 2025-11-25) and without.", "reqps",
					q("{{era}}", `sum by (era) (rate(hako_mcp_request_duration_seconds_count{@}[$__rate_interval]))`)),
				stack("Refused requests", "Requests that were not taken in, by reason.", "reqps",
					q("{{reason}}", `sum by (reason) (rate(hako_mcp_requests_refused_total{@}[$__rate_interval]))`)),
				lines("Sessions, streams, requests", "What is open at the door.", "short", q("sessions", `sum(hako_mcp_sessions{@})`),
					q("streams", `sum(hako_mcp_streams{@})`), q("requests in flight", `sum(hako_mcp_requests_in_flight{@})`)),
			}},
			{"Policy and people", []panel{
				stack("Decisions", "What the policy decided.", "reqps", q("{{action}}", `sum by (action) (rate(hako_policy_decisions_total{@}[$__rate_interval]))`)),
				ranked("Rules that deny or ask", "The rules of the policy that stood in the way of calls.", "reqps", "{{action}}: {{rule}}",
					`topk(10, sum by (action, rule) (rate(hako_policy_decisions_total{@, action!="allow"}[$__rate_interval])))`),
				stack("Questions to people", "What became of them.", "reqps", q("{{outcome}}", `sum by (outcome) (rate(hako_approvals_total{@}[$__rate_interval]))`)),
				quantiles("How long people take", "From a question until it was answered or expired.", "hako_approval_wait_seconds_bucket{@}", ""),
				stack("Questions of upstream servers", "What they asked in the middle of calls, and what became of it.", "reqps",
					q("{{mode}} {{outcome}}", `sum by (mode, outcome) (rate(hako_elicitations_total{@}[$__rate_interval]))`)),
				stack("Quotas used up", "Calls that were refused, by quota.", "reqps", q("{{quota}}", `sum by (quota) (rate(hako_quota_refusals_total{@}[$__rate_interval]))`)),
				stack("Secrets found", "Secrets in arguments, results and logs, and what became of them.", "reqps",
					q("{{place}}: {{action}}", `sum by (place, action) (rate(hako_secrets_found_total{@}[$__rate_interval]))`)),
			}},
			{"Audit log", []panel{
				lines("Records", "Records that were written, and events that could not be.", "ops", q("written", `sum(rate(hako_audit_records_total{@}[$__rate_interval]))`),
					q("failed", `sum(rate(hako_audit_failures_total{@}[$__rate_interval]))`)),
				lines("Growth", "Bytes that are written.", "Bps", q("{{instance}}", `sum by (instance) (rate(hako_audit_bytes_total{@}[$__rate_interval]))`)),
				lines("Not signed yet", "Records since the log was signed last, which happens every minute and every thousand records.", "short",
					q("{{instance}}", `sum by (instance) (hako_audit_unsigned_records{@})`)),
				lines("Age of the signature", "Time since the log was signed last, where there is something to sign.", "s",
					q("{{instance}}", `(time() - hako_audit_signed_timestamp_seconds{@}) * (hako_audit_unsigned_records{@} > bool 0) * (hako_audit_signed_timestamp_seconds{@} > bool 0)`)),
			}},
			{"Process", []panel{
				lines("CPU", "Processors in use.", "short", q("{{instance}}", `sum by (instance) (rate(process_cpu_seconds_total{@}[$__rate_interval]))`)),
				lines("Memory", "Resident memory of the process, guests included.", "bytes", q("{{instance}}", `sum by (instance) (process_resident_memory_bytes{@})`)),
				lines("Goroutines and files", "Both should follow the load and come back.", "short", q("goroutines {{instance}}", `sum by (instance) (go_goroutines{@})`),
					q("open files {{instance}}", `sum by (instance) (process_open_fds{@})`)),
				table("Processes", "Which version runs where.", `max by (instance, version, goversion) (hako_build_info{@})`),
			}},
		},
	}
}
