// Package llm completes conversations with large language models of Anthropic, OpenAI and servers with an
// OpenAI-compatible API.
//
// A Chain is the Provider that an operator configures with one Spec per model: New makes it, and Complete sends a
// Request to the first model and fails over to the next. Tool names, error kinds and token usage are the same for every
// vendor. Keys and conversations are never logged.
package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options configures a Chain.
type Options struct {
	// Specs are the models in order of preference.
	Specs []Spec
	// Proxy is an upstream proxy (http, https or socks5) for all requests. Nil means none. The environment is ignored.
	Proxy *url.URL
	// Observe, if set, is called after every completion, concurrently.
	Observe func(Completion)
	// Logger receives retries, failovers and omitted tools. Nil discards them.
	Logger *slog.Logger
}

// Completion summarizes one model's attempt to complete a request, retries included.
type Completion struct {
	// Name is Spec.Name, Model is Spec.Model.
	Name, Model string
	Duration    time.Duration
	// FirstText is the time to the first part of the response, or 0 if none arrived.
	FirstText time.Duration
	// Attempts counts the HTTP requests sent.
	Attempts int
	Usage    Usage
	Cost     float64
	// Outcome is Completed, Canceled, or a Kind.
	Outcome string
	// TraceID is the ID of the completion's trace, or empty.
	TraceID string
}

// Outcomes of a Completion besides the kinds of Error.
const (
	Completed = "ok"
	Canceled  = "canceled"
)

// Chain completes requests with its first model and fails over to the next on errors specific to a model or its
// provider. It is safe for concurrent use.
type Chain struct {
	models []*model
	logger *slog.Logger
}

var _ Provider = (*Chain)(nil)

// New returns a Chain. It fails if a Spec is invalid or two have the same name. It neither reads keys nor sends
// requests.
func New(o Options) (*Chain, error) {
	if len(o.Specs) == 0 {
		return nil, errors.New("no model is configured: add one under llm.models in hako.yaml (docs/chat.md)")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Completion) {}
	}
	c := &Chain{logger: o.Logger}
	for _, spec := range o.Specs {
		if err := spec.Check(); err != nil {
			return nil, fmt.Errorf("model %s: %w", cmp.Or(spec.Name, spec.Model), err)
		}
		spec = spec.withDefaults()
		if slices.Contains(c.Models(), spec.Name) {
			return nil, fmt.Errorf("two models have the name %s: give one another name", spec.Name)
		}
		client := newHTTPClient(o.Proxy, spec.Timeout)
		m := newModel(spec, newVendor(&spec, client), &o)
		m.closeIdle = client.CloseIdleConnections
		c.models = append(c.models, m)
	}
	return c, nil
}

// CloseIdleConnections closes the connections to the providers that no request uses, and those of requests in flight
// when these have ended. The chain, and those that First made of it, can be used afterwards.
func (c *Chain) CloseIdleConnections() {
	for _, m := range c.models {
		m.closeIdle()
	}
}

// newVendor returns the API client for a checked Spec.
func newVendor(spec *Spec, client *http.Client) vendor {
	switch spec.Provider {
	case Anthropic:
		return newAnthropic(spec, client)
	case OpenAI:
		return newResponses(spec, client)
	}
	return newChat(spec, client)
}

// Name is the name of the first model.
func (c *Chain) Name() string { return c.models[0].spec.Name }

// Models lists the names of the models in order of preference.
func (c *Chain) Models() []string {
	names := make([]string, len(c.models))
	for i, m := range c.models {
		names[i] = m.spec.Name
	}
	return names
}

// Window is the smallest context window of the models in tokens, response included.
func (c *Chain) Window() int {
	window := c.models[0].spec.ContextWindow
	for _, m := range c.models {
		window = min(window, m.spec.ContextWindow)
	}
	return window
}

// First returns a Chain of the same models that prefers the named one. Both chains share cooldowns and what was learned
// about the providers' APIs. The error for an unknown name lists the models.
func (c *Chain) First(name string) (*Chain, error) {
	at := slices.Index(c.Models(), name)
	if at < 0 {
		return nil, fmt.Errorf("there is no model %q: the configured models are %s",
			name, strings.Join(c.Models(), ", "))
	}
	first := []*model{c.models[at]}
	return &Chain{models: slices.Concat(first, c.models[:at], c.models[at+1:]), logger: c.logger}, nil
}

// Complete tries the models in turn, as Provider specifies, and returns the first response or the last error. A model
// that failed is tried last for 30 seconds or for as long as its provider asked to wait, at most an hour.
func (c *Chain) Complete(ctx context.Context, r *Request, stream func(Delta)) (*Response, error) {
	order := c.order(time.Now())
	for i, m := range order {
		response, shown, err := m.complete(ctx, r, stream)
		var e *Error
		if err == nil || shown || !errors.As(err, &e) || !e.failsOver() {
			return response, err
		}
		m.coolDown(e)
		if i == len(order)-1 {
			return nil, err
		}
		c.logger.Warn("failing over to the next model",
			"model", m.spec.Name, "next", order[i+1].spec.Name, "kind", e.Kind, "reason", e.Text)
		r.retrying(Retry{Model: order[i+1].spec.Name})
	}
	return nil, errors.New("a chain without models") // unreachable: New requires one
}

// order returns the models in order of preference, those cooling down last.
func (c *Chain) order(now time.Time) []*model {
	order := slices.Clone(c.models)
	slices.SortStableFunc(order, func(a, b *model) int { return cmp.Compare(a.cooling(now), b.cooling(now)) })
	return order
}

// failsOver reports whether another model might succeed: the error is not about the conversation or the request.
func (e *Error) failsOver() bool {
	return e.temporary() || e.Kind == Auth || e.Kind == Invalid && e.Status == 404
}

// cooldown is the least time for which a model that failed is tried last.
const cooldown = 30 * time.Second

func (m *model) coolDown(e *Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coolUntil = time.Now().Add(max(cooldown, min(e.RetryAfter, time.Hour)))
}

// cooling is 1 while the model cools down, else 0, for sorting.
func (m *model) cooling(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.coolUntil) {
		return 1
	}
	return 0
}
