package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	// Status is the HTTP status, or 0 if there was none or it was that of success.
	Status int
	// RetryAfter is how long the provider asks to wait, or 0.
	RetryAfter time.Duration
	// Text says what happened and what helps, in English, for whoever runs hako. It holds neither the key nor anything of the
	// conversation, so it may be logged and shown.
	Text string
	// Err is the cause, or nil. It may hold what the provider wrote, which may quote the conversation: it is not part of Error.
	Err error

	// parameter is what of the request the provider does not accept, if it says so.
	parameter string
}

func (e *Error) Error() string { return fmt.Sprintf("model %s: %s", e.Provider, e.Text) }

// Unwrap returns the Kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// texts say what helps.
var texts = map[Kind]string{
	RateLimited:   "the provider's rate limit is reached: try again later, or raise the limit of the account",
	Overloaded:    "the provider has no capacity at the moment: try again later",
	ContextWindow: "the conversation is longer than the model reads: start a new one, or set contextWindow to what the model has",
	Auth:          "the provider refuses the key or the account: check the key, what it may use, and the account's credit",
	Invalid:       "the provider does not accept the request",
	Refused:       "the provider refuses to answer this conversation",
	Unavailable:   "the provider cannot be reached, or failed",
}

// newError makes an Error with the text of its kind.
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

// complain says which parameter it is about. The name goes into Text only if it can be nothing but one of ours.
func (e *Error) complain(parameter string) {
	if e.Kind != Invalid || !parameterName.MatchString(parameter) {
		return
	}
	e.parameter = strings.TrimSuffix(parameter, ":")
	e.Text += ": it complains of " + e.parameter
}

// parameterName is the form of parameters, tools[0].function.parameters among them.
var parameterName = regexp.MustCompile(`^[a-z_]{1,40}([.\[][a-z0-9_\]]{1,40}){0,8}:?$`)

// newTransportError is for a request that got no answer of the API's.
func newTransportError(err error) *Error {
	e := newError(Unavailable, 0, nil, err)
	for _, known := range []error{errSilent, errTooLong, errRedirect, errNoStream} {
		if errors.Is(err, known) {
			e.Text = "the provider failed: " + known.Error()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Text = brokenOff(nil).Text
	}
	return e
}

// tooLong reports a message that says that the conversation does not fit. There is no code for it at Anthropic and most servers.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"prompt is too long", "exceed context limit", // Anthropic
		"context length", "context window", "maximum context", // OpenAI, vLLM, LM Studio
		"context size", "exceeds the available context", // llama.cpp
	}, func(words string) bool { return strings.Contains(message, words) })
}

// brokenOff is the error for an answer without its end.
func brokenOff(cause error) *Error {
	e := newError(Unavailable, 0, nil, cause)
	e.Text = "the answer broke off before its end"
	return e
}

// retryAfter reads how long a server wants its client to wait (RFC 9110, section 10.2.3; Retry-After-Ms is OpenAI's).
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// kindOf is the kind of an HTTP status of which nothing more is known.
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
