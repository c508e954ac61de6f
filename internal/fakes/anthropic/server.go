// Package anthropic is a stand-in for Anthropic's Messages API, version 2026-10-21
// (platform.claude.com/docs/en/api/messages): it checks what it is sent as the API does, and answers from a script,
// streamed or whole.
package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/hako-run/hako/internal/fakes/fault"
	"github.com/hako-run/hako/internal/fakes/script"
)

// Server is an http.Handler that serves /v1/messages and /v1/models. Its zero value repeats what it is told. It is safe
// for concurrent use; the fields are set before the first request.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan
	// Script says what is answered. Nil repeats.
	Script *script.Script
	// Key is the API key that is accepted. Empty accepts any, also none.
	Key string
	// Window is how many tokens a conversation may have, at four bytes each. Zero is any number.
	Window int
	// Models are those there are. Nil is any.
	Models []string

	// Requests are what was sent.
	Requests script.Requests

	mu       sync.Mutex
	answers  int
	thoughts map[string]string // guarded by mu: what was thought, by its signature
	cached   map[string]bool   // guarded by mu: beginnings that are kept
}

// apiError is an error in the API's form (platform.claude.com/docs/en/api/errors).
type apiError struct {
	status     int
	kind       string
	message    string
	retryAfter string
}

func (e *apiError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &apiError{status: 400, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

func (e *apiError) body() any {
	return map[string]any{"type": "error", "error": map[string]any{"type": e.kind, "message": e.message},
		"request_id": "req_stand_in"}
}

// failures are the errors of a script.
var failures = map[string]apiError{
	"rate_limit": {status: 429, kind: "rate_limit_error",
		message: "This request would exceed your account's rate limit."},
	"overloaded": {status: 529, kind: "overloaded_error", message: "Overloaded"},
	"server":     {status: 500, kind: "api_error", message: "Internal server error"},
	"context": {status: 400, kind: "invalid_request_error",
		message: "prompt is too long: 200001 tokens > 200000 maximum"},
	"key":     {status: 401, kind: "authentication_error", message: "invalid x-api-key"},
	"credit":  {status: 402, kind: "billing_error", message: "Your credit balance is too low to access the API."},
	"invalid": {status: 400, kind: "invalid_request_error", message: "messages: something is wrong with them"},
	"model":   {status: 404, kind: "not_found_error", message: "model: it does not exist"},
	"policy":  {status: 400, kind: "invalid_request_error", message: "Output blocked by content filtering policy"},
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := s.Requests.Read(w, r)
	if err != nil {
		refuse(w, &apiError{status: 413, kind: "request_too_large", message: "Request exceeds the maximum size"})
		return
	}
	if err := s.route(w, r, body); err != nil {
		refuse(w, err)
	}
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, body []byte) error {
	if err := s.checkHeaders(r); err != nil {
		return err
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		return s.models(w)
	case "POST /v1/messages":
		return s.messages(w, r, body)
	}
	return &apiError{status: 404, kind: "not_found_error", message: "Not found"}
}

func (s *Server) checkHeaders(r *http.Request) error {
	key := r.Header.Get("X-Api-Key")
	if bearer := r.Header.Get("Authorization"); key == "" && len(bearer) > len("Bearer ") {
		key = bearer[len("Bearer "):]
	}
	switch version := r.Header.Get("Anthropic-Version"); {
	case s.Key != "" && key != s.Key:
		return &apiError{status: 401, kind: "authentication_error", message: "invalid x-api-key"}
	case version == "":
		return invalid("anthropic-version: header is required")
	case version != "2026-10-21":
		return invalid("anthropic-version: %q is not a version that the stand-in knows", version)
	case r.Method == "POST" && r.Header.Get("Content-Type") != "application/json":
		return invalid("content-type: must be application/json")
	}
	return nil
}

func (s *Server) models(w http.ResponseWriter) error {
	list := []any{}
	for _, model := range s.Models {
		list = append(list, map[string]any{"type": "model", "id": model, "display_name": model,
			"created_at": "2026-01-01T00:00:00Z"})
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"data": list, "has_more": false})
}

func refuse(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{status: 500, kind: "api_error", message: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_stand_in")
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(e.body())
}
