// Package llm asks large language models: Anthropic's, OpenAI's and those of servers that speak OpenAI's API.
//
// A Chain is the Provider that an operator configures: the first model answers, and the next one where it cannot. Whatever the
// vendor, tools keep their names, errors have a Kind, and usage is counted the same way. Neither keys nor conversations are logged.
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
	// TraceID is the trace that the completion belongs to; empty if none.
	TraceID string
}

// Outcomes of a Completion besides the kinds of Error.
const (
	Completed = "ok"
	Canceled  = "canceled"
)

// Chain asks the first of its models, and the next one where the answer is an error that another model may not have. It is safe for
// concurrent use.
type Chain struct {
	models []*model
	logger *slog.Logger
}

var _ Provider = (*Chain)(nil)

// New returns a Chain. The error names the Spec that is wrong, or says that two have one name. Nothing is read or sent yet.
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
		c.models = append(c.models, newModel(spec, newVendor(&spec, newHTTPClient(o.Proxy, spec.Timeout)), &o))
	}
	return c, nil
}

// newVendor returns what speaks the API of a Spec that has been checked.
func newVendor(spec *Spec, client *http.Client) vendor {
	switch spec.Provider {
	case Anthropic:
		return newAnthropic(spec, client)
	case OpenAI:
		return newResponses(spec, client)
	}
	return newChat(spec, client)
}

// Name is that of the first model.
func (c *Chain) Name() string { return c.models[0].spec.Name }

// Models are the names of the models, the first one first.
func (c *Chain) Models() []string {
	names := make([]string, len(c.models))
	for i, m := range c.models {
		names[i] = m.spec.Name
	}
	return names
}

// Window is how many tokens every one of the models reads, its answer included.
func (c *Chain) Window() int {
	window := c.models[0].spec.ContextWindow
	for _, m := range c.models {
		window = min(window, m.spec.ContextWindow)
	}
	return window
}

// First returns a Chain of the same models that asks the named one first. They share what they learn. The error lists the names there
// are.
func (c *Chain) First(name string) (*Chain, error) {
	at := slices.Index(c.Models(), name)
	if at < 0 {
		return nil, fmt.Errorf("there is no model %q: there are %s", name, strings.Join(c.Models(), ", "))
	}
	first := []*model{c.models[at]}
	return &Chain{models: slices.Concat(first, c.models[:at], c.models[at+1:]), logger: c.logger}, nil
}

// Complete asks the models in turn, as Provider says, and returns the first answer or the last error. A model that failed is asked
// after the others for the next 30 seconds, or for as long as its provider asked to wait.
func (c *Chain) Complete(ctx context.Context, r *Request, stream func(Delta)) (*Response, error) {
	order := c.order(time.Now())
	for i, m := range order {
		response, shown, err := m.complete(ctx, r, stream)
		var e *Error
		if err == nil || shown || !errors.As(err, &e) || !e.another() {
			return response, err
		}
		m.rest(e)
		if i == len(order)-1 {
			return nil, err
		}
		c.logger.Warn("the next model is asked", "model", m.spec.Name, "next", order[i+1].spec.Name, "kind", e.Kind, "status", e.Status)
	}
	return nil, errors.New("a chain without models") // New makes none
}

// order is that of the models, those that rest after the others.
func (c *Chain) order(now time.Time) []*model {
	order := slices.Clone(c.models)
	slices.SortStableFunc(order, func(a, b *model) int { return cmp.Compare(a.rests(now), b.rests(now)) })
	return order
}

// another reports an error that another model may not have: not what is wrong with the conversation or the request.
func (e *Error) another() bool {
	return e.passing() || e.Kind == Auth || e.Kind == Invalid && e.Status == 404
}

// restTime is how long a model that failed is asked after the others.
const restTime = 30 * time.Second

func (m *model) rest(e *Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resting = time.Now().Add(max(restTime, min(e.RetryAfter, time.Hour)))
}

// rests is 1 if the model rests and 0 if not.
func (m *model) rests(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.resting) {
		return 1
	}
	return 0
}
