package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/address"
)

// Providers of models.
const (
	// Anthropic is Anthropic's Messages API.
	Anthropic = "anthropic"
	// OpenAI is OpenAI's own API.
	OpenAI = "openai"
	// OpenAICompatible is a server that speaks OpenAI's Chat Completions API: LM Studio, Ollama, vLLM, llama.cpp and
	// many more.
	OpenAICompatible = "openai-compatible"
)

// Defaults of a Spec.
const (
	// DefaultMaxTokens bounds a response, thinking included.
	DefaultMaxTokens = 16_384
	// DefaultContextWindow is smaller than the windows of Anthropic's and OpenAI's current models. Local servers often
	// have less.
	DefaultContextWindow = 128_000
	// DefaultRetries is the number of retries of a request.
	DefaultRetries = 3
	// DefaultTimeout bounds the time without data. Thinking models, and local models that process a long prompt, may
	// send nothing for minutes.
	DefaultTimeout = 5 * time.Minute
)

// Spec configures one model.
type Spec struct {
	// Name identifies the model in logs, metrics and messages. Empty means Model.
	Name string
	// Provider is one of the constants above.
	Provider string
	// Model is the provider's name of the model.
	Model string
	// BaseURL is the address of the API, including "/v1" for OpenAI's and without it for Anthropic's. Empty means the
	// vendor's own. OpenAICompatible requires one.
	BaseURL string
	// Key is the API key. It may be missing for OpenAICompatible.
	Key secret.Source
	// MaxTokens bounds one response, in tokens. Zero means DefaultMaxTokens, but at most half of ContextWindow.
	MaxTokens int
	// ContextWindow is the model's limit for prompt and response, in tokens. Zero means DefaultContextWindow.
	ContextWindow int
	// Retries bounds the retries after temporary errors, before the next model is tried. Zero means DefaultRetries, a
	// negative number none.
	Retries int
	// Timeout bounds the time without data, before the response and within it. Zero means DefaultTimeout.
	Timeout time.Duration
	// Images reports whether a model of OpenAICompatible accepts images in user messages. The vendors' own models
	// always do.
	Images bool
	// DeferTools is true if the provider loads deferred tools when the model searches for them; see Tool. Nil means at
	// the vendor's own address only. A model that rejects it is sent the tools that find the others from then on.
	DeferTools *bool
	// Prices determine Response.Cost.
	Prices Prices
}

// Prices are per million tokens, in a currency of the operator's choice.
type Prices struct {
	Input, Output float64
	// CacheRead and CacheWrite are the prices of the tokens of that name in Usage.
	CacheRead, CacheWrite float64
}

// Cost returns the price of u.
func (p Prices) Cost(u Usage) float64 {
	return (p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) +
		p.CacheWrite*float64(u.CacheWrite)) / 1e6
}

// withDefaults returns s with defaults for unset fields.
func (s Spec) withDefaults() Spec {
	s.Name = cmp.Or(s.Name, s.Model)
	s.ContextWindow = cmp.Or(s.ContextWindow, DefaultContextWindow)
	s.MaxTokens = cmp.Or(s.MaxTokens, min(DefaultMaxTokens, max(1, s.ContextWindow/2)))
	s.Retries = max(0, cmp.Or(s.Retries, DefaultRetries))
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	return s
}

func (s *Spec) defersTools() bool {
	if s.DeferTools != nil {
		return *s.DeferTools
	}
	return s.BaseURL == ""
}

// Check validates s. It fails for an unknown provider, a missing field, a negative number, or an address to which a key
// must not be sent.
func (s Spec) Check() error {
	switch {
	case s.Provider != Anthropic && s.Provider != OpenAI && s.Provider != OpenAICompatible:
		return fmt.Errorf("unknown provider %q: use %s, %s or %s", s.Provider, Anthropic,
			OpenAI, OpenAICompatible)
	case s.Model == "":
		return errors.New("model is missing: set it to the provider's name of the model")
	case s.Provider == OpenAICompatible && s.BaseURL == "":
		return errors.New("baseUrl is missing: set it to the server's address, such as http://127.0.0.1:1234/v1")
	case s.Provider == OpenAICompatible && s.DeferTools != nil && *s.DeferTools:
		return fmt.Errorf("deferTools is only for %s and %s: hako searches tools for models of %s itself, so remove it",
			Anthropic, OpenAI, s.Provider)
	case s.MaxTokens < 0 || s.ContextWindow < 0 || s.Timeout < 0:
		return errors.New("maxTokens, contextWindow and timeout must not be negative; 0 is the default")
	case s.Prices.Input < 0 || s.Prices.Output < 0 || s.Prices.CacheRead < 0 || s.Prices.CacheWrite < 0:
		return errors.New("prices must not be negative")
	}
	if s.Provider != OpenAICompatible || !s.Key.IsZero() {
		if err := s.Key.Check(); err != nil {
			return fmt.Errorf("key %w", err)
		}
	}
	return CheckBaseURL(s.BaseURL, !s.Key.IsZero())
}

// CheckBaseURL validates the address of a provider's API: an http or https URL without user, query and fragment. If a
// key is sent there, the URL must be https or a loopback address. Empty means the vendor's own address and is valid.
func CheckBaseURL(text string, keyed bool) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("baseUrl %q is not an http or https URL", text)
	case u.User != nil || strings.ContainsAny(text, "?#"):
		return errors.New("baseUrl has a user, a query or a fragment: use only a scheme, a host and a path")
	case keyed && !address.IsConfidential(u):
		return fmt.Errorf("baseUrl %q would send the key in the clear: use https or a loopback address", text)
	}
	return nil
}
