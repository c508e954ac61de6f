package llm

import (
	"fmt"
	"time"
)

// Kind says what went wrong. It is an error itself, so that errors.Is(err, llm.ContextWindow) holds for an *Error of that Kind.
type Kind string

// The kinds of Error.
const (
	RateLimited   Kind = "rate_limited"   // too many requests or tokens for now
	Overloaded    Kind = "overloaded"     // the provider has no capacity for now
	ContextWindow Kind = "context_window" // the conversation is longer than the model reads: shorten it
	Auth          Kind = "auth"           // the key is missing or refused, may not use the model, or the account has no credit left
	Invalid       Kind = "invalid"        // the provider does not understand the request, or does not have the model
	Refused       Kind = "refused"        // the provider does not want to answer this conversation
	Unavailable   Kind = "unavailable"    // not reached, an error of the provider's, or an answer that broke off
)

// Error makes a Kind an error to compare with.
func (k Kind) Error() string { return "llm: " + string(k) }

// Error is why there is no answer.
type Error struct {
	Kind Kind
	// Provider is Spec.Name.
	Provider string
	// Status is the HTTP status, or 0 if there was no answer or it broke off.
	Status int
	// RetryAfter is how long the provider asks to wait, or 0.
	RetryAfter time.Duration
	// Text says what happened and what helps, in English, for whoever runs hako. It holds neither the key nor anything of the
	// conversation, so it may be logged and shown.
	Text string
	// Err is the cause, or nil. It may hold what the provider wrote, which may quote the conversation: it is not part of Error.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("model %s: %s", e.Provider, e.Text) }

// Unwrap returns the Kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
