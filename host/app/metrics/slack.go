package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// slackCounters counts events from and requests to Slack.
type slackCounters struct {
	events, requests, limited *prometheus.CounterVec
	rollovers                 prometheus.Counter
}

func newSlackCounters(r *registry) slackCounters {
	return slackCounters{
		events: r.counter("hako_slack_events_total",
			"Events from Slack, by type and outcome.", "type", "result"),
		requests: r.counter("hako_slack_api_requests_total",
			"Requests to Slack's Web API by method and result.", "method", "result"),
		limited: r.counter("hako_slack_rate_limited_total",
			"Requests that Slack rate-limited.", "method"),
		rollovers: promauto.With(r).NewCounter(prometheus.CounterOpts{
			Name: "hako_slack_stream_rollovers_total",
			Help: "Answers continued in another message because one was full or too old.",
		}),
	}
}

// SlackEvent counts an event from Slack.
func (m *Metrics) SlackEvent(kind, result string) { m.slack.events.WithLabelValues(kind, result).Inc() }

// SlackRequest counts a request to the Web API.
func (m *Metrics) SlackRequest(method, result string) {
	m.slack.requests.WithLabelValues(method, result).Inc()
}

// SlackRateLimited counts a rate-limited request.
func (m *Metrics) SlackRateLimited(method string) { m.slack.limited.WithLabelValues(method).Inc() }

// SlackRollover counts an answer continued in another message.
func (m *Metrics) SlackRollover() { m.slack.rollovers.Inc() }
