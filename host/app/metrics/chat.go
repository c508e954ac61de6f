package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
)

// turnBuckets are for durations that include models and people, in seconds.
var turnBuckets = []float64{0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

// chatCounters counts turns of conversations and requests to models.
type chatCounters struct {
	turns, rounds         *prometheus.HistogramVec
	calls, tokens, cost   *prometheus.CounterVec
	attempts, feedback    *prometheus.CounterVec
	requests, firstTokens *prometheus.HistogramVec
}

func newChatCounters(r *registry) chatCounters {
	return chatCounters{
		turns: r.histogram("hako_chat_turn_duration_seconds",
			"Duration from a person's message to the end of its answer, by frontend and outcome.",
			turnBuckets, "frontend", "outcome"),
		rounds: r.histogram("hako_chat_turn_rounds",
			"Requests to a model per answer.", []float64{1, 2, 3, 4, 6, 8, 11}, "frontend"),
		calls: r.counter("hako_chat_tool_calls_total",
			"Tool calls made for answers.", "frontend"),
		feedback: r.counter("hako_chat_feedback_total",
			"Feedback on answers, by frontend and rating (good, bad).", "frontend", "rating"),
		requests: r.histogram("hako_llm_request_duration_seconds",
			"Duration until a model's response was complete, including retries, by model and outcome.",
			durationBuckets, "model", "outcome"),
		attempts: r.counter("hako_llm_attempts_total",
			"Requests sent to models, including retries.", "model"),
		firstTokens: r.histogram("hako_llm_first_text_seconds",
			"Duration until the first part of a model's response.", durationBuckets, "model"),
		tokens: r.counter("hako_llm_tokens_total",
			"Tokens by model and type (input, output, cache_read, cache_write).", "model", "type"),
		cost: r.counter("hako_llm_cost_total",
			"Cost by the prices of the configuration, in their currency.", "model"),
	}
}

// TurnEnded counts a turn of a conversation.
func (m *Metrics) TurnEnded(r chat.Record) {
	observe(m.chat.turns.WithLabelValues(r.Frontend, string(r.Outcome)), r.Duration, r.TraceID)
	m.chat.rounds.WithLabelValues(r.Frontend).Observe(float64(r.Rounds))
	m.chat.calls.WithLabelValues(r.Frontend).Add(float64(r.Calls))
}

// AnswerRated counts the rating of an answer.
func (m *Metrics) AnswerRated(f chat.Feedback) {
	rating := "bad"
	if f.Good {
		rating = "good"
	}
	m.chat.feedback.WithLabelValues(f.Frontend, rating).Inc()
}

// ModelAsked counts a request to a model, labelled with its configured name.
func (m *Metrics) ModelAsked(c llm.Completion) {
	observe(m.chat.requests.WithLabelValues(c.Name, c.Outcome), c.Duration, c.TraceID)
	m.chat.attempts.WithLabelValues(c.Name).Add(float64(c.Attempts))
	if c.FirstText > 0 {
		m.chat.firstTokens.WithLabelValues(c.Name).Observe(c.FirstText.Seconds())
	}
	for kind, n := range map[string]int{
		"input": c.Usage.Input, "output": c.Usage.Output, "cache_read": c.Usage.CacheRead,
		"cache_write": c.Usage.CacheWrite,
	} {
		m.chat.tokens.WithLabelValues(c.Name, kind).Add(float64(n))
	}
	m.chat.cost.WithLabelValues(c.Name).Add(c.Cost)
}
