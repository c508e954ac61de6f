// Package llm asks large language models: Anthropic's, OpenAI's and those of servers that speak OpenAI's API.
//
// A Chain is the Provider that an operator configures: the first model answers, and the next one where it cannot. Whatever the
// vendor, tools keep their names, errors have a Kind, and usage is counted the same way. Neither keys nor conversations are logged.
package llm

import (
	"log/slog"
	"net/url"
	"time"
)

// Options configures a Chain.
type Options struct {
	// Specs are the models, the first one first.
	Specs []Spec
	// Proxy is an upstream proxy (http, https or socks5) for all requests. Nil means none; the environment plays no part.
	Proxy *url.URL
	// Observe, if set, is told of every completion, from many goroutines at once.
	Observe func(Completion)
	// Logger receives retries, failovers and tools that were left out. Nil discards them.
	Logger *slog.Logger
}

// Completion is what came of asking one model, with all repetitions.
type Completion struct {
	// Provider is Spec.Name, Model is Spec.Model.
	Provider, Model string
	Duration        time.Duration
	// FirstText is the time until the answer's first part, or 0 if none came.
	FirstText time.Duration
	// Attempts is how many requests were sent.
	Attempts int
	Usage    Usage
	Cost     float64
	// Outcome is Completed, Canceled, or a Kind.
	Outcome string
}

// Outcomes of a Completion besides the kinds of Error.
const (
	Completed = "ok"
	Canceled  = "canceled"
)
