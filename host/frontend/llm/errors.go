package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/eventstream"
	"github.com/hako-run/hako/internal/retry"
)

// Kind classifies an Error. It is an error itself, so that errors.Is(err, llm.ContextWindow) holds for an *Error of
// that Kind.
type Kind string

// The kinds of Error.
const (
	RateLimited   Kind = "rate_limited"   // too many requests or tokens for now
	Overloaded    Kind = "overloaded"     // the provider has no capacity for now
	ContextWindow Kind = "context_window" // the conversation exceeds the model's context window: shorten it
	// the key is missing or refused, may not use the model, or the account has no credit left
	Auth        Kind = "auth"
	Invalid     Kind = "invalid"     // the provider rejects the request or does not have the model
	Refused     Kind = "refused"     // the provider refuses to answer this conversation
	Unavailable Kind = "unavailable" // not reachable, a server error, or a truncated stream
)

// Error implements error, so that errors.Is can match a Kind.
func (k Kind) Error() string { return "llm: " + string(k) }

// Error explains why a model gave no response.
type Error struct {
	Kind Kind
	// Name is Spec.Name.
	Name string
	// Status is the HTTP status, or 0 if there was none or the error came within a successful response.
	Status int
	// RetryAfter is the wait that the provider asks for, or 0.
	RetryAfter time.Duration
	// Text describes the error and its remedy, in English, for the operator. It contains neither the key nor parts
	// of the conversation, so it may be logged and shown.
	Text string
	// Err is the cause, or nil. It may contain the provider's message, which may quote the conversation, so Error omits
	// it.
	Err error

	// words is the provider's message, or empty. It may quote the conversation and the key.
	words string
	// rejected is what the provider rejects, as far as it says so.
	rejected rejection
}

func (e *Error) Error() string { return fmt.Sprintf("model %s: %s", e.Name, e.Text) }

// Unwrap returns the Kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// texts describe each kind and its remedy.
var texts = map[Kind]string{
	RateLimited:   "the provider's rate limit is reached: try again later, or raise the limit of the account",
	Overloaded:    "the provider has no capacity at the moment: try again later",
	ContextWindow: "the conversation exceeds the model's context window: start a new one, or set contextWindow to the model's",
	Auth:          "the provider rejects the key or the account: check the key, its permissions, and the account's credit",
	Invalid:       "the provider rejects the request",
	Refused:       "the provider refuses to answer this conversation",
	Unavailable:   "the provider cannot be reached, or failed",
}

// newError returns an Error with the text of its kind.
func newError(kind Kind, status int, header http.Header, cause error) *Error {
	e := &Error{Kind: kind, Status: status, RetryAfter: retryAfter(header), Text: texts[kind], Err: cause}
	switch {
	case kind == Invalid && status == http.StatusNotFound:
		e.Text = "the provider does not have the model, or the API is not at baseUrl: check both"
	case status != 0:
		e.Text += fmt.Sprintf(" (HTTP status %d)", status)
	}
	return e
}

// newTransportError returns the Error for a request without a response from the API.
func newTransportError(err error) *Error {
	e := newError(Unavailable, 0, nil, err)
	for _, known := range []error{errIdle, errTooLong, errRedirect, errNoStream, errMalformed, errManyCalls} {
		if errors.Is(err, known) {
			e.Text = "the provider failed: " + known.Error()
		}
	}
	var misfit *misfitError
	if errors.As(err, &misfit) {
		e.Text = "the provider failed: " + misfit.Error()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, eventstream.ErrUnended) {
		e.Text = brokenOff(nil).Text
	}
	return e
}

// tooLong reports whether an error message says that the conversation exceeds the context window. Anthropic and most
// servers have no code for that.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"prompt is too long", "exceed context limit", // Anthropic
		"context length", "context window", "maximum context", // OpenAI, vLLM, LM Studio
		"context size", "exceeds the available context", // llama.cpp
	}, func(words string) bool { return strings.Contains(message, words) })
}

// brokenOff returns the error for a truncated response.
func brokenOff(cause error) *Error {
	e := newError(Unavailable, 0, nil, cause)
	e.Text = "the answer broke off before its end"
	return e
}

// retryAfter parses Retry-After (RFC 9110, section 10.2.3) and OpenAI's Retry-After-Ms.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return retry.After(header, time.Now())
}

// kindOf returns the kind for an HTTP status without a known error code.
func kindOf(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusServiceUnavailable, status == 529: // Anthropic's "overloaded"
		return Overloaded
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		return Auth
	case status == http.StatusRequestEntityTooLarge:
		return ContextWindow
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return Unavailable
	}
	return Invalid
}
