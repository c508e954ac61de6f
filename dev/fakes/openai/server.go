// Package openai is a fake of OpenAI's Responses and Chat Completions APIs (developers.openai.com/api/reference),
// and with Compatible for a server that speaks the latter only: it checks what it is sent as the APIs do, and answers
// from a script, streamed.
package openai

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/script"
)

// Server is an http.Handler that serves /v1/responses, /v1/chat/completions and /v1/models. Its zero value repeats what
// the request. It is safe for concurrent use; the fields are set before the first request.
type Server struct {
	// Faults are met before anything else.
	Faults fault.Plan
	// Script has the server's answers. Nil repeats the request.
	Script *script.Script
	// Key is the API key that is accepted. Empty accepts any, also none.
	Key string
	// Window limits the tokens of a conversation, at four bytes each. Zero means no limit.
	Window int
	// Models are those there are. Nil is any.
	Models []string
	// Searchless are the models that cannot search for tools.
	Searchless []string
	// Thinking are the models that think: they take no temperature, and tools only in the Responses API.
	Thinking []string
	// Compatible is a local server: it has Chat Completions only, calls the limit max_tokens, and takes any tool.
	Compatible bool

	// Requests are the requests that were sent.
	Requests script.Requests

	mu       sync.Mutex
	answers  int
	thoughts map[string]string // guarded by mu: encrypted thoughts, by the ID of the call that they led to
	sent     map[string]string // guarded by mu: items of searches, by ID
}

// apiError is an error in the API's form (developers.openai.com/api/docs/guides/error-codes).
type apiError struct {
	status     int
	kind       string
	code       string
	param      string
	message    string
	retryAfter string
}

func (e *apiError) Error() string { return e.message }

func invalid(param, format string, args ...any) error {
	return &apiError{status: 400, kind: "invalid_request_error", param: param, message: fmt.Sprintf(format, args...)}
}

func (e *apiError) body() map[string]any {
	return map[string]any{"message": e.message, "type": e.kind, "param": orNull(e.param), "code": orNull(e.code)}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// failures are the errors of a script.
var failures = map[string]apiError{
	"rate_limit": {status: 429, kind: "tokens", code: "rate_limit_exceeded",
		message: "Rate limit reached for the model."},
	"overloaded": {status: 503, kind: "server_error", code: "server_is_overloaded",
		message: "The engine is currently overloaded."},
	"server": {status: 500, kind: "server_error",
		message: "The server had an error while processing your request."},
	"context": {status: 400, kind: "invalid_request_error", code: "context_length_exceeded",
		message: "Your input exceeds the context window of this model."},
	"key": {status: 401, kind: "invalid_request_error", code: "invalid_api_key",
		message: "Incorrect API key provided."},
	"credit": {status: 429, kind: "insufficient_quota", code: "insufficient_quota",
		message: "You exceeded your current quota."},
	"invalid": {status: 400, kind: "invalid_request_error", message: "Something is wrong with the messages."},
	"model": {status: 404, kind: "invalid_request_error", code: "model_not_found",
		message: "The model does not exist."},
	"policy": {status: 400, kind: "invalid_request_error", code: "content_policy_violation",
		message: "Your request was rejected by the safety system."},
}

func failure(f *script.Failure) *apiError {
	e := failures[f.Kind]
	e.retryAfter = f.RetryAfter
	return &e
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := s.Requests.Read(w, r)
	if err == nil {
		err = s.route(w, r, body)
	}
	if err != nil {
		refuse(w, err)
	}
}

func (s *Server) route(w http.ResponseWriter, r *http.Request, body []byte) error {
	switch {
	case s.Key != "" && fakehttp.Bearer(r) != s.Key:
		return failure(&script.Failure{Kind: "key"})
	case r.Method == "POST" && r.Header.Get("Content-Type") != "application/json":
		return invalid("", "You must send application/json.")
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		s.models(w)
		return nil
	case "POST /v1/chat/completions":
		return s.chat(w, r, body)
	case "POST /v1/responses":
		if !s.Compatible {
			return s.responses(w, r, body)
		}
	}
	return &apiError{status: 404, kind: "invalid_request_error", message: "Unknown request URL"}
}

func (s *Server) models(w http.ResponseWriter) {
	list := []any{}
	for _, model := range s.Models {
		list = append(list, map[string]any{"id": model, "object": "model", "created": 1767225600,
			"owned_by": "fake"})
	}
	fakehttp.JSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// checkModel makes the checks that both APIs make first.
func (s *Server) checkModel(model string, body []byte) error {
	switch {
	case model == "":
		return invalid("model", "you must provide a model parameter")
	case s.Models != nil && !slices.Contains(s.Models, model):
		return failure(&script.Failure{Kind: "model"})
	case s.Window > 0 && len(body)/4 > s.Window && s.Compatible:
		return &apiError{status: 400, kind: "exceed_context_size_error",
			message: "the request exceeds the available context size"}
	case s.Window > 0 && len(body)/4 > s.Window:
		return failure(&script.Failure{Kind: "context"})
	}
	return nil
}

// step returns the script's answer to c.
func (s *Server) step(c *script.Conversation) (*script.Step, error) {
	step := s.Script.Answer(c)
	if step.Fail != nil && !step.Fail.Streamed {
		return nil, failure(step.Fail)
	}
	return &step, nil
}

// number numbers answers.
func (s *Server) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	return s.answers
}

func refuse(w http.ResponseWriter, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{status: 500, kind: "server_error", message: err.Error()}
	}
	w.Header().Set("X-Request-Id", "req_stand_in")
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	fakehttp.JSON(w, e.status, map[string]any{"error": e.body()})
}
