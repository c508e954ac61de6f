package metrics

import "github.com/prometheus/client_golang/prometheus"

// slackCounters counts events from and requests to Slack.
type slackCounters struct {
	events, requests, limited *prometheus.CounterVec
	rollovers                 prometheus.Counter
}

func newSlackCounters() slackCounters {
	return slackCounters{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_slack_events_total",
			Help: "What Slack told the bot, by type and what became of it.",
		}, []string{"type", "result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_slack_api_requests_total",
			Help: "Requests to Slack's Web API by method and result.",
		}, []string{"method", "result"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hako_slack_rate_limited_total",
			Help: "Requests that Slack put off.",
		}, []string{"method"}),
		rollovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hako_slack_stream_rollovers_total",
			Help: "Answers that went on in another message, because one was full or too old.",
		}),
	}
}

func (s slackCounters) register(r *prometheus.Registry) {
	r.MustRegister(s.events, s.requests, s.limited, s.rollovers)
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
