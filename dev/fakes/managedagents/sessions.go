package managedagents

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/script"
)

// Statuses of a session.
const (
	idle       = "idle"
	running    = "running"
	terminated = "terminated"
)

// conversation is a session with an agent.
type conversation struct {
	id, environment, title, status string
	agent                          *agent // as it was when the session began
	created, updated               time.Time
	turns                          int
	events                         []Event
	changed                        chan struct{} // closed at the next event
	deleted                        bool

	text    string          // the user's last
	open    []string        // calls without a result, in their order
	results []string        // of the calls of this round
	used    map[string]bool // calls that had a result or were interrupted
}

// Event is an event of a session, as the API shows it.
type Event map[string]any

func (e Event) text(name string) string {
	text, _ := e[name].(string)
	return text
}

func (s *Server) createSession(w http.ResponseWriter, body []byte) error {
	var in struct {
		Agent       json.RawMessage   `json:"agent"`
		Environment string            `json:"environment_id"`
		Title       string            `json:"title"`
		Events      []json.RawMessage `json:"initial_events"`
	}
	if err := decode(body, &in); err != nil {
		return err
	}
	var named struct {
		ID      string
		Version int
	}
	if json.Unmarshal(in.Agent, &named.ID) != nil {
		_ = json.Unmarshal(in.Agent, &named)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(named.ID)
	if named.Version != 0 {
		a = s.version(named.ID, named.Version)
	}
	switch {
	case a == nil:
		return missing("agent")
	case a.Archived != nil:
		return anthropic.Invalid("agent: is archived")
	case in.Environment == "":
		return anthropic.Invalid("environment_id: Field required")
	}
	c := s.newSession(a, in.Environment)
	c.title = in.Title
	for _, raw := range in.Events {
		if _, err := s.take(c, raw); err != nil {
			return err
		}
	}
	return reply(w, s.shown(c))
}

// newSession makes a session. mu is held.
func (s *Server) newSession(a *agent, environment string) *conversation {
	now := s.tick()
	c := &conversation{
		id: s.newID("sesn"), agent: a, environment: environment, status: idle, created: now, updated: now,
		changed: make(chan struct{}),
		used:    map[string]bool{},
	}
	if s.sessions == nil {
		s.sessions = map[string]*conversation{}
	}
	s.sessions[c.id] = c
	s.order = append(s.order, c.id)
	return c
}

// shown is a session as the API shows it. mu is held.
func (s *Server) shown(c *conversation) any {
	return map[string]any{
		"id": c.id, "type": "session", "agent": c.agent.snapshot(), "environment_id": c.environment, "title": c.title,
		"status": c.status, "created_at": c.created, "updated_at": c.updated, "archived_at": nil,
		"metadata": map[string]string{},
		"stats":    map[string]any{"active_seconds": c.turns, "duration_seconds": c.updated.Sub(c.created).Seconds()},
		"usage":    map[string]any{"input_tokens": 100 * c.turns, "output_tokens": 10 * c.turns},
	}
}

// find returns a session. mu is held.
func (s *Server) find(id string) (*conversation, error) {
	c := s.sessions[id]
	if c == nil || c.deleted {
		return nil, missing("session")
	}
	return c, nil
}

func (s *Server) showSession(w http.ResponseWriter, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(id)
	if err != nil {
		return err
	}
	return reply(w, s.shown(c))
}

func (s *Server) deleteSession(w http.ResponseWriter, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(id)
	if err != nil {
		return err
	}
	s.delete(c)
	return reply(w, map[string]any{"id": id, "type": "session_deleted"})
}

// delete deletes a session and notifies its streams. mu is held.
func (s *Server) delete(c *conversation) {
	s.emit(c, Event{"type": "session.deleted"})
	c.deleted = true
}

// listSessions lists the newest first.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []any
	for _, id := range slices.Backward(s.order) {
		c := s.sessions[id]
		if agent := r.URL.Query().Get("agent_id"); !c.deleted && (agent == "" || agent == c.agent.ID) {
			list = append(list, s.shown(c))
		}
	}
	return s.page(w, r, list)
}

// page shows a part of a list.
func (s *Server) page(w http.ResponseWriter, r *http.Request, list []any) error {
	query := r.URL.Query()
	size, from := len(list), 0
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return anthropic.Invalid("limit: must be from 1 to 1000")
		}
		size = n
	}
	if s.PageSize > 0 {
		size = min(size, s.PageSize)
	}
	if text := query.Get("page"); text != "" {
		var err error
		if from, err = strconv.Atoi(text); err != nil || from > len(list) {
			return anthropic.Invalid("page: is not a cursor of this list")
		}
	}
	to := min(from+size, len(list))
	var next any
	if to < len(list) {
		next = strconv.Itoa(to)
	}
	return reply(w, map[string]any{"data": append([]any{}, list[from:to]...), "next_page": next})
}

// turn runs the agent, which answers the last message. mu is held.
func (s *Server) turn(c *conversation) {
	c.turns++
	c.status = running
	s.emit(c, Event{"type": "session.status_running"})
	step := s.Script.Answer(&script.Conversation{Text: c.text, Results: c.results, Tools: s.tools(c.agent)})
	c.results = nil
	if step.Say != "" {
		s.emit(c, Event{"type": "agent.message", "content": []any{map[string]any{"type": "text", "text": step.Say}}})
	}
	for _, call := range step.Call {
		var input any
		if json.Unmarshal([]byte(call.Arguments), &input) != nil {
			input = call.Arguments
		}
		s.call(c, call.Tool, input, "")
	}
	s.rest(c)
}

// call makes the agent call a tool. mu is held.
func (s *Server) call(c *conversation, tool string, input any, thread string) string {
	e := Event{"type": "agent.custom_tool_use", "name": tool, "input": input}
	if thread != "" {
		e["session_thread_id"] = thread
	}
	id := s.emit(c, e)
	c.open = append(c.open, id)
	return id
}

// rest makes the session wait for the user, or for results. mu is held.
func (s *Server) rest(c *conversation) {
	c.status = idle
	reason := map[string]any{"type": "end_turn"}
	if len(c.open) > 0 {
		reason = map[string]any{"type": "requires_action", "event_ids": slices.Clone(c.open)}
	}
	s.emit(c, Event{"type": "session.status_idle", "stop_reason": reason, "stop_details": nil})
}
