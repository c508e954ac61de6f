// Package managedagents is a fake of Anthropic's Managed Agents API, as far as custom tools go: agents, sessions
// and their events (platform.claude.com/docs/en/managed-agents), with an agent that follows a script.
package managedagents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/fakehttp"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/script"
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
	// Script has the agents' answers. Nil repeats the message.
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

func missing(what string) error {
	return &anthropic.Error{Status: 404, Kind: "not_found_error", Message: what + " not found"}
}

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
	if err != nil {
		anthropic.Refuse(w, err)
	}
}

func (s *Server) check(r *http.Request) error {
	switch {
	case s.Key != "" && anthropic.Key(r) != s.Key:
		return &anthropic.Error{Status: 401, Kind: "authentication_error", Message: "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") != version:
		return anthropic.Invalid("anthropic-version: %s is required", version)
	case !strings.Contains(r.Header.Get("Anthropic-Beta"), beta):
		return anthropic.Invalid("anthropic-beta: %s is required", beta)
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
	fakehttp.JSON(w, http.StatusOK, value)
	return nil
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return anthropic.Invalid("the request body is not valid: %v", err)
	}
	return nil
}
