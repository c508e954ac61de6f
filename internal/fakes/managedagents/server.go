// Package managedagents is a stand-in for Anthropic's Managed Agents API, as far as custom tools go: agents, sessions
// and their events (platform.claude.com/docs/en/managed-agents), with an agent that follows a script.
package managedagents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/fakes/fault"
	"github.com/hako-run/hako/internal/fakes/script"
)

const (
	// beta and version have to be in the headers of every request.
	beta    = "managed-agents-2026-04-01"
	version = "2026-10-21"
)

// DefaultAgent is there from the beginning. It may call any tool that its script does.
const DefaultAgent = "agent_stand_in"

// Environment is the one of sessions that NewSession makes.
const Environment = "env_stand_in"

// Server stands in for the API. Its fields are set before it serves; the zero value is ready. It is safe for concurrent
// use.
type Server struct {
	// Key is the API key. Empty accepts any.
	Key string
	// Script is what agents answer. Nil repeats what they are told.
	Script *script.Script
	// PageSize bounds pages. Zero means what is asked for.
	PageSize int
	// Mute keeps events out of streams, which stay open.
	Mute bool
	// Faults makes requests fail.
	Faults fault.Plan
	// Requests keeps what was sent.
	Requests script.Requests

	mu       sync.Mutex // guards what follows
	last     int
	clock    time.Time
	agents   map[string][]*agent // their versions, from 1 on
	sessions map[string]*conversation
	order    []string      // of sessions, the oldest first
	broken   chan struct{} // closed to end the streams that are open
}

// apiError is an error as the API has it.
type apiError struct {
	status        int
	kind, message string
}

func (e *apiError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &apiError{400, "invalid_request_error", fmt.Sprintf(format, args...)}
}

func missing(what string) error { return &apiError{404, "not_found_error", what + " not found"} }

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Faults.Wrap(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := s.Requests.Read(w, r)
	if err == nil {
		err = s.check(r)
	}
	if err == nil {
		err = s.route(w, r, body)
	}
	if err == nil {
		return
	}
	var e *apiError
	if !errors.As(err, &e) {
		e = &apiError{500, "api_error", err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error",
		"error": map[string]any{"type": e.kind, "message": e.message}, "request_id": "req_stand_in"})
}

func (s *Server) check(r *http.Request) error {
	key := r.Header.Get("X-Api-Key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case s.Key != "" && key != s.Key:
		return &apiError{401, "authentication_error", "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") != version:
		return invalid("anthropic-version: %s is required", version)
	case !strings.Contains(r.Header.Get("Anthropic-Beta"), beta):
		return invalid("anthropic-beta: %s is required", beta)
	}
	return nil
}

// route finds what a request is for. Paths are /v1/agents…, /v1/sessions… and /v1/sessions/ID/events….
func (s *Server) route(w http.ResponseWriter, r *http.Request, body []byte) error {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	id := ""
	if len(parts) > 1 {
		id, parts[1] = parts[1], "ID"
	}
	switch r.Method + " " + strings.Join(parts, "/") {
	case "POST agents":
		return s.createAgent(w, body)
	case "POST agents/ID":
		return s.updateAgent(w, id, body)
	case "GET agents/ID":
		return s.showAgent(w, id, r.URL.Query())
	case "GET agents/ID/versions":
		return s.listVersions(w, r, id)
	case "POST agents/ID/archive":
		return s.archiveAgent(w, id)
	case "POST sessions":
		return s.createSession(w, body)
	case "GET sessions":
		return s.listSessions(w, r)
	case "GET sessions/ID":
		return s.showSession(w, id)
	case "DELETE sessions/ID":
		return s.deleteSession(w, id)
	case "GET sessions/ID/events":
		return s.listEvents(w, r, id)
	case "POST sessions/ID/events":
		return s.takeEvents(w, id, body)
	case "GET sessions/ID/events/stream":
		return s.stream(w, r, id)
	}
	return missing("path")
}

// tick is the time, which never stands still: events are ordered by it. mu is held.
func (s *Server) tick() time.Time {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !now.After(s.clock) {
		now = s.clock.Add(time.Microsecond)
	}
	s.clock = now
	return now
}

// newID returns an ID. mu is held.
func (s *Server) newID(prefix string) string {
	s.last++
	return fmt.Sprintf("%s_%06d", prefix, s.last)
}

func reply(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(value)
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return invalid("the request body is not valid: %v", err)
	}
	return nil
}
