package main

func conversations() *dashboard {
	return &dashboard{
		name: "hako-llm-slack", title: "hako / LLM and Slack", about: "Models: what they answer, how fast, for how much. Managed agents: what they call. Slack: what people tell the bot, and what Slack takes from it.",
		rows: []row{
			{"Models", []panel{
				stat("Requests", "Requests to models a second.", "reqps", `sum(rate(hako_llm_request_duration_seconds_count{@}[$__rate_interval]))`),
				stat("Failing", "Share of requests that got no answer.", "percentunit",
					`sum(rate(hako_llm_request_duration_seconds_count{@, outcome!~"ok|canceled"}[$__rate_interval])) / sum(rate(hako_llm_request_duration_seconds_count{@}[$__rate_interval])) or vector(0) * sum(rate(hako_llm_request_duration_seconds_count{@}[$__rate_interval]))`),
				stat("First text (p95)", "19 of 20 answers begin sooner than this.", "s", `histogram_quantile(0.95, sum by (le) (rate(hako_llm_first_text_seconds_bucket{@}[$__rate_interval])))`),
				stat("Tokens", "Tokens in the time that is shown.", "short", `sum(increase(hako_llm_tokens_total{@}[$__range]))`),
				stat("Cost", "In the time that is shown, in the currency of the configuration.", "short", `sum(increase(hako_llm_cost_total{@}[$__range]))`),
				stat("Turns", "Answers a second.", "reqps", `sum(rate(hako_chat_turn_duration_seconds_count{@}[$__rate_interval]))`),
				stack("Requests by outcome", "By model.", "reqps", q("{{model}} {{outcome}}", `sum by (model, outcome) (rate(hako_llm_request_duration_seconds_count{@}[$__rate_interval]))`)),
				quantiles("Duration of requests", "Until an answer was whole, repetitions included.", "hako_llm_request_duration_seconds_bucket{@}", "model"),
				quantiles("Time to the first text", "What people wait before they see something.", "hako_llm_first_text_seconds_bucket{@}", "model"),
				lines("Attempts for a request", "Above 1 there are repetitions.", "short",
					q("{{model}}", `sum by (model) (rate(hako_llm_attempts_total{@}[$__rate_interval])) / sum by (model) (rate(hako_llm_request_duration_seconds_count{@}[$__rate_interval]))`)),
				stack("Tokens by type", "Cached input is cheaper.", "short", q("{{model}} {{type}}", `sum by (model, type) (rate(hako_llm_tokens_total{@}[$__rate_interval]))`)),
				stack("Cost an hour", "By model, by the prices in the configuration.", "short", q("{{model}}", `sum by (model) (rate(hako_llm_cost_total{@}[$__rate_interval])) * 3600`)),
			}},
			{"Conversations", []panel{
				stack("Turns by outcome", "Messages of people that were answered, or not.", "reqps", q("{{door}} {{outcome}}", `sum by (door, outcome) (rate(hako_chat_turn_duration_seconds_count{@}[$__rate_interval]))`)),
				quantiles("Duration of turns", "From a person's message to the end of its answer.", "hako_chat_turn_duration_seconds_bucket{@}", "door"),
				lines("Rounds for a turn", "How often a model was asked for one answer, on average.", "short",
					q("{{door}}", `sum by (door) (rate(hako_chat_turn_rounds_sum{@}[$__rate_interval])) / sum by (door) (rate(hako_chat_turn_rounds_count{@}[$__rate_interval]))`)),
				stack("What people think of answers", "Buttons below answers that were pressed.", "reqps",
					q("{{door}} {{rating}}", `sum by (door, rating) (rate(hako_chat_feedback_total{@}[$__rate_interval]))`)),
				lines("Tool calls for answers", "Calls that models made.", "reqps", q("{{door}}", `sum by (door) (rate(hako_chat_tool_calls_total{@}[$__rate_interval]))`)),
			}},
			{"Managed agents", []panel{
				stat("Sessions", "Sessions of managed agents that are followed.", "short", `sum(hako_agent_sessions{@})`),
				stat("With other tools", "Those of them whose agent has other tools than hako offers: hako agent apply.", "short", `sum(hako_agent_sessions_outdated{@})`),
				stat("Calls", "Calls of agents that have ended, a second.", "reqps", `sum(rate(hako_agent_call_duration_seconds_count{@}[$__rate_interval]))`),
				stat("Without the tool's result", "Share of calls whose agent was told that the outcome is not known, or that it cannot be delivered.", "percentunit",
					`sum(rate(hako_agent_call_duration_seconds_count{@, result=~"lost|undelivered"}[$__rate_interval])) / sum(rate(hako_agent_call_duration_seconds_count{@}[$__rate_interval])) or vector(0) * sum(rate(hako_agent_call_duration_seconds_count{@}[$__rate_interval]))`),
				stat("API failing", "Share of requests to Anthropic's API that were not served.", "percentunit",
					`sum(rate(hako_agent_api_requests_total{@, result!~"ok|canceled|gone"}[$__rate_interval])) / sum(rate(hako_agent_api_requests_total{@}[$__rate_interval])) or vector(0) * sum(rate(hako_agent_api_requests_total{@}[$__rate_interval]))`),
				stack("Calls by result", "What became of them. dropped: nobody wanted an answer any more.", "reqps", q("{{result}}", `sum by (result) (rate(hako_agent_call_duration_seconds_count{@}[$__rate_interval]))`)),
				quantiles("Duration of calls", "From the moment that a call was seen, with the time that people take to agree.", "hako_agent_call_duration_seconds_bucket{@}", "result"),
				stack("Requests to the API", "By what for, and what became of them.", "reqps", q("{{operation}} {{result}}", `sum by (operation, result) (rate(hako_agent_api_requests_total{@}[$__rate_interval]))`)),
				lines("Sessions by process", "Each hako agent run follows its own.", "short", q("{{instance}}", `sum by (instance) (hako_agent_sessions{@} > 0)`)),
			}},
			{"Slack", []panel{
				stack("What Slack tells", "Events by type, and what became of them.", "reqps", q("{{type}} {{result}}", `sum by (type, result) (rate(hako_slack_events_total{@}[$__rate_interval]))`)),
				stack("Requests to Slack by result", "auth means that the token does not hold.", "reqps", q("{{result}}", `sum by (result) (rate(hako_slack_api_requests_total{@}[$__rate_interval]))`)),
				stack("Requests to Slack by method", "Of the Web API.", "reqps", q("{{method}}", `sum by (method) (rate(hako_slack_api_requests_total{@}[$__rate_interval]))`)),
				lines("Put off by Slack", "Requests that met a rate limit, and were sent again.", "reqps", q("{{method}}", `sum by (method) (rate(hako_slack_rate_limited_total{@}[$__rate_interval]))`)),
				lines("Answers in several messages", "Streamed answers that went on in another message.", "reqps", q("{{instance}}", `sum by (instance) (rate(hako_slack_stream_rollovers_total{@}[$__rate_interval]))`)),
			}},
		},
	}
}
