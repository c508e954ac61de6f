package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/hako-run/hako/host/credential"
)

// Providers of models.
const (
	// Anthropic is Anthropic's Messages API.
	Anthropic = "anthropic"
	// OpenAI is OpenAI's own API.
	OpenAI = "openai"
	// OpenAICompatible is a server that speaks OpenAI's Chat Completions API: LM Studio, Ollama, vLLM, llama.cpp and many more.
	OpenAICompatible = "openai-compatible"
)

// Defaults of a Spec.
const (
	// DefaultMaxTokens bounds an answer, thoughts included.
	DefaultMaxTokens = 16_384
	// DefaultContextWindow is smaller than that of any of Anthropic's and OpenAI's present models. Local servers often have less.
	DefaultContextWindow = 128_000
	// DefaultRetries is how often a request is repeated.
	DefaultRetries = 3
	// DefaultTimeout is the longest silence. Models that think, and local ones that read a long conversation, are silent for minutes.
	DefaultTimeout = 5 * time.Minute
)

// Spec is what an operator says of one model.
type Spec struct {
	// Name is what logs, metrics and people call it. Empty means Model.
	Name string
	// Provider is one of the constants above.
	Provider string
	// Model is the provider's name of it.
	Model string
	// BaseURL is where the API is, up to and with "/v1" for OpenAI's and without it for Anthropic's. Empty means the vendor's own;
	// OpenAICompatible needs one.
	BaseURL string
	// Key is the API key. It may be missing for OpenAICompatible.
	Key credential.Source
	// MaxTokens bounds one answer, in tokens. Zero means DefaultMaxTokens, but at most half of ContextWindow.
	MaxTokens int
	// ContextWindow is how many tokens the model reads, its answer included. Zero means DefaultContextWindow.
	ContextWindow int
	// Retries is how often a request that failed for the moment is repeated before the next model is asked. Zero means
	// DefaultRetries, a negative number none.
	Retries int
	// Timeout is how long the provider may be silent, before the answer and within it. Zero means DefaultTimeout.
	Timeout time.Duration
	// Images says that a model of OpenAICompatible takes images of users. Those of the vendors always do.
	Images bool
	// Prices are what Response.Cost is computed from.
	Prices Prices
}

// Prices are per million tokens, in a currency of the operator's choice.
type Prices struct {
	Input, Output float64
	// CacheRead and CacheWrite are those of Usage.
	CacheRead, CacheWrite float64
}

// Cost is the price of u.
func (p Prices) Cost(u Usage) float64 {
	return (p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*float64(u.CacheWrite)) / 1e6
}

// withDefaults returns s with what is not set.
func (s Spec) withDefaults() Spec {
	s.Name = cmp.Or(s.Name, s.Model)
	s.ContextWindow = cmp.Or(s.ContextWindow, DefaultContextWindow)
	s.MaxTokens = cmp.Or(s.MaxTokens, min(DefaultMaxTokens, max(1, s.ContextWindow/2)))
	s.Retries = max(0, cmp.Or(s.Retries, DefaultRetries))
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	return s
}

// Check returns what is wrong with s: an unknown provider, something missing, a negative number, or an address that a key must not
// be sent to.
func (s Spec) Check() error {
	switch {
	case s.Provider != Anthropic && s.Provider != OpenAI && s.Provider != OpenAICompatible:
		return fmt.Errorf("provider %q does not exist: there are %s, %s and %s", s.Provider, Anthropic, OpenAI, OpenAICompatible)
	case s.Model == "":
		return errors.New("model is missing: it is the provider's name of the model")
	case s.Provider == OpenAICompatible && s.BaseURL == "":
		return errors.New("baseUrl is missing: it is where the server is, such as http://127.0.0.1:1234/v1")
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

// CheckBaseURL reports why text is not where a provider's API can be: it is an http or https URL without user, query and fragment, and https
// or on this machine if a key is sent there. Empty is the vendor's own address.
func CheckBaseURL(text string, keyed bool) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("baseUrl %q is not an http or https URL", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("baseUrl has a user, a query or a fragment: it is a scheme, a host and a path")
	case u.Scheme == "http" && keyed && !isLoopback(u.Hostname()):
		return fmt.Errorf("baseUrl %q would send the key in the clear: use https, or an address of this machine", text)
	}
	return nil
}

// isLoopback reports a host that is this machine by its literal form.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
