package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// Kind classifies an Error. It is an error itself, so that errors.Is(err, agent.Auth) holds for an *Error of that Kind.
type Kind string

// The kinds of Error.
const (
	Auth        Kind = "auth"         // the key is missing, refused or lacks a permission
	Gone        Kind = "gone"         // the session, agent or environment does not exist
	Refused     Kind = "refused"      // the API rejects the request
	RateLimited Kind = "rate_limited" // too many requests for now
	Unavailable Kind = "unavailable"  // not reachable, a server error, or a truncated response
)

// Error implements error, so that errors.Is can match a Kind.
func (k Kind) Error() string { return "agent: " + string(k) }

// Error explains why a request to the Managed Agents API failed. It matches its Kind.
type Error struct {
	Kind Kind
	// Status is the HTTP status, or 0 if there was none.
	Status int
	// RetryAfter is the wait that the API asks for, or 0.
	RetryAfter time.Duration
	// Err is the cause. It may contain the API's message, which may quote a conversation, so Error omits it.
	Err error
}

// texts describe each kind and its remedy.
var texts = map[Kind]string{
	Auth:        "the API rejects the key, or the key may not use managed agents: check agent.key and agent.workspace",
	Gone:        "there is no such session, agent or environment: check its ID and the workspace of the key",
	Refused:     "the API rejects the request",
	RateLimited: "the rate limit of the account is reached",
	Unavailable: "the API cannot be reached, or failed",
}

var errRedirect = errors.New(
	"it redirects to another address, to which the key is not sent: set agent.baseUrl to that address")

// misfitError is a response that cannot be read. Its text has no part of the response.
type misfitError struct{ member, kind string }

func (e *misfitError) Error() string {
	switch {
	case e.kind == "":
		return "a response of the API cannot be read: it is no JSON, or has a malformed time"
	case e.member == "":
		return "a response of the API cannot be read: it must not be of the type " + e.kind
	}
	return fmt.Sprintf("a response of the API cannot be read: %s must not be of the type %s", e.member, e.kind)
}

// decode parses a response of the API, or a part of it. Its error is a *misfitError.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		kind, _, _ := strings.Cut(other.Value, " ") // "number" of "number 1.5"
		return &misfitError{other.Field, kind}
	}
	return &misfitError{}
}

func (e *Error) Error() string {
	var misfit *misfitError
	if errors.As(e.Err, &misfit) {
		return "managed agents: " + misfit.Error()
	}
	if errors.Is(e.Err, errRedirect) {
		return "managed agents: the API cannot be used: " + errRedirect.Error()
	}
	if e.Status == 0 {
		return "managed agents: " + texts[e.Kind]
	}
	return fmt.Sprintf("managed agents: %s (HTTP status %d)", texts[e.Kind], e.Status)
}

// Unwrap returns the Kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// temporary reports whether a retry might succeed.
func (e *Error) temporary() bool { return e.Kind == RateLimited || e.Kind == Unavailable }

// apiError is an error response of the API, or an error within a stream. That has no status and no header.
type apiError struct {
	status int
	header http.Header
	body   []byte
}

func (e *apiError) Error() string { return fmt.Sprintf("HTTP status %d: %s", e.status, e.body) }

// errorBody is the body of an apiError.
type errorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// content parses the body. What it does not say is empty.
func (e *apiError) content() (b errorBody) {
	_ = json.Unmarshal(e.body, &b)
	return b
}

// streamedError returns the error that an event of a stream reports, or nil.
func streamedError(data []byte) error {
	e := &apiError{body: data}
	if !bytes.Contains(data, []byte(`"error"`)) || e.content().Type != "error" {
		return nil
	}
	e.body = bytes.Clone(data)
	return e
}

// asError converts err to an *Error, or to ctx's error if ctx has ended.
func asError(ctx context.Context, err error) error {
	var known *Error
	var api *apiError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case errors.As(err, &api):
		return &Error{Kind: kindOf(api), Status: api.status, Err: err,
			RetryAfter: min(retry.After(api.header, time.Now()), maxRetryAfter)}
	}
	return &Error{Kind: Unavailable, Err: err}
}

// kindOf returns the kind by the status, or by the type for an error within a stream.
func kindOf(e *apiError) Kind {
	switch status := e.status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return Auth
	case status == http.StatusNotFound, status == http.StatusGone:
		return Gone
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return Unavailable
	case status >= 400:
		return Refused
	}
	switch e.content().Error.Type {
	case "authentication_error", "permission_error":
		return Auth
	case "not_found_error":
		return Gone
	case "rate_limit_error":
		return RateLimited
	}
	return Unavailable
}

// maxRetryAfter bounds Retry-After.
const maxRetryAfter = 10 * time.Minute
