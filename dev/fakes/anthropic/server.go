// Package anthropic is a fake of Anthropic's Messages API, version 2026-10-21
// (platform.claude.com/docs/en/api/messages): it checks what it is sent as the API does, and answers from a script,
// streamed or whole.
package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/script"
)

// Server is an http.Handler that serves /v1/messages and /v1/models. Its zero value repeats the request. It is safe
// for concurrent use; the fields are set before the first request.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan
	// Script has the server's answers. Nil repeats the request.
	Script *script.Script
	// Key is the API key that is accepted. Empty accepts any, also none.
	Key string
	// Window limits the tokens of a conversation, at four bytes each. Zero means no limit.
	Window int
	// Models are those there are. Nil is any. Searchless are those that cannot search for tools.
	Models, Searchless []string

	// Requests are the requests that were sent.
	Requests script.Requests

	mu       sync.Mutex
	answers  int
	thoughts map[string]string // guarded by mu: what was thought, by its signature
	cached   map[string]bool   // guarded by mu: beginnings that are kept
	searches map[string]search // guarded by mu: by ID
	needed   map[string]string // guarded by mu: the ID of the search before a call, by the call's ID
}

// Error is a refusal in the API's form (platform.claude.com/docs/en/api/errors).
type Error struct {
	Status        int
	Kind, Message string
	RetryAfter    string // the header of the same name; empty leaves it out
}

func (e *Error) Error() string { return e.Message }

// Invalid is the refusal of a request that is wrong.
func Invalid(format string, args ...any) error {
	return &Error{Status: 400, Kind: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

func (e *Error) body() any {
	return map[string]any{"type": "error", "error": map[string]any{"type": e.Kind, "message": e.Message},
		"request_id": "req_stand_in"}
}

// failures are the errors of a script.
var failures = map[string]Error{
	"rate_limit": {Status: 429, Kind: "rate_limit_error",
		Message: "This request would exceed your account's rate limit."},
	"overloaded": {Status: 529, Kind: "overloaded_error", Message: "Overloaded"},
	"server":     {Status: 500, Kind: "api_error", Message: "Internal server error"},
	"context": {Status: 400, Kind: "invalid_request_error",
		Message: "prompt is too long: 200001 tokens > 200000 maximum"},
	"key":     {Status: 401, Kind: "authentication_error", Message: "invalid x-api-key"},
	"credit":  {Status: 402, Kind: "billing_error", Message: "Your credit balance is too low to access the API."},
	"invalid": {Status: 400, Kind: "invalid_request_error", Message: "messages: something is wrong with them"},
	"model":   {Status: 404, Kind: "not_found_error", Message: "model: it does not exist"},
	"policy":  {Status: 400, Kind: "invalid_request_error", Message: "Output blocked by content filtering policy"},
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := s.Requests.Read(w, r)
	if err != nil {
		Refuse(w, &Error{Status: 413, Kind: "request_too_large", Message: "Request exceeds the maximum size"})
		return
	}
	if err := s.route(w, r, body); err != nil {
		Refuse(w, err)
	}
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, body []byte) error {
	if err := s.checkHeaders(r); err != nil {
		return err
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		s.models(w)
		return nil
	case "POST /v1/messages":
		return s.messages(w, r, body)
	}
	return &Error{Status: 404, Kind: "not_found_error", Message: "Not found"}
}

// Key returns the API key of a request, which either header may carry.
func Key(r *http.Request) string { return cmp.Or(r.Header.Get("X-Api-Key"), fakehttp.Bearer(r)) }

func (s *Server) checkHeaders(r *http.Request) error {
	switch version := r.Header.Get("Anthropic-Version"); {
	case s.Key != "" && Key(r) != s.Key:
		return &Error{Status: 401, Kind: "authentication_error", Message: "invalid x-api-key"}
	case version == "":
		return Invalid("anthropic-version: header is required")
	case version != "2026-10-21":
		return Invalid("anthropic-version: %q is not a version that the fake knows", version)
	case r.Method == "POST" && r.Header.Get("Content-Type") != "application/json":
		return Invalid("content-type: must be application/json")
	}
	return nil
}

func (s *Server) models(w http.ResponseWriter) {
	list := []any{}
	for _, model := range s.Models {
		list = append(list, map[string]any{"type": "model", "id": model, "display_name": model,
			"created_at": "2026-01-01T00:00:00Z"})
	}
	fakehttp.JSON(w, http.StatusOK, map[string]any{"data": list, "has_more": false})
}

// Refuse answers with an *Error in the API's form, and with an internal error for any other.
func Refuse(w http.ResponseWriter, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Status: 500, Kind: "api_error", Message: err.Error()}
	}
	w.Header().Set("Request-Id", "req_stand_in")
	if e.RetryAfter != "" {
		w.Header().Set("Retry-After", e.RetryAfter)
	}
	fakehttp.JSON(w, e.Status, e.body())
}
