package managedagents

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"time"
)

// NewSession makes a session of the default agent, and returns its ID.
func (s *Server) NewSession() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newSession(s.agent(DefaultAgent), Environment).id
}

// Change changes an agent, as its owner can. The body is that of the API's request.
func (s *Server) Change(id, body string) error {
	return s.updateAgent(httptest.NewRecorder(), id, []byte(body))
}

// Archive makes an agent one that cannot be changed any more.
func (s *Server) Archive(id string) error { return s.archiveAgent(httptest.NewRecorder(), id) }

// Agent returns the last version of an agent, as the API shows it; nil if there is none.
func (s *Server) Agent(id string) map[string]any {
	w, shown := httptest.NewRecorder(), map[string]any(nil)
	if s.showAgent(w, id, nil) == nil {
		_ = json.Unmarshal(w.Body.Bytes(), &shown) // it was just written
	}
	return shown
}

// Tell sends a message of the user's to the agent.
func (s *Server) Tell(session, text string) error {
	return s.with(session, func(c *conversation) error {
		return s.told(c, Event{"type": "user.message", "content": []any{map[string]any{"type": "text", "text": text}}})
	})
}

// Call makes the agent call tools without a message, and returns the IDs of the calls. An empty thread is the
// session's own.
func (s *Server) Call(session, thread string, calls ...Call) (ids []string) {
	_ = s.with(session, func(c *conversation) error {
		for _, call := range calls {
			ids = append(ids, s.call(c, call.Tool, call.Input, thread))
		}
		s.rest(c)
		return nil
	})
	return ids
}

// Call is a call of a tool.
type Call struct {
	Tool  string
	Input any
}

// Interrupt stops the agent, as its user can.
func (s *Server) Interrupt(session string) {
	_ = s.with(session, func(c *conversation) error {
		s.interrupt(c, Event{"type": "user.interrupt"})
		return nil
	})
}

// Emit adds an event as it is, with an ID and a time unless it has them.
func (s *Server) Emit(session string, e Event) {
	_ = s.with(session, func(c *conversation) error {
		s.emit(c, e)
		return nil
	})
}

// Age has everything in a session happen earlier.
func (s *Server) Age(session string, by time.Duration) {
	_ = s.with(session, func(c *conversation) error {
		c.created, c.updated = c.created.Add(-by), c.updated.Add(-by)
		for _, e := range c.events {
			if at, err := time.Parse(time.RFC3339Nano, e.text("processed_at")); err == nil {
				e["processed_at"] = at.Add(-by).Format(time.RFC3339Nano)
			}
		}
		return nil
	})
}

// Terminate ends a session, Delete deletes it.
func (s *Server) Terminate(session string) {
	_ = s.with(session, func(c *conversation) error {
		c.status = terminated
		s.emit(c, Event{"type": "session.status_terminated"})
		return nil
	})
}

// Delete deletes a session.
func (s *Server) Delete(session string) {
	_ = s.with(session, func(c *conversation) error {
		s.delete(c)
		return nil
	})
}

// Break ends all streams in the middle.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		close(s.broken)
	}
	s.broken = make(chan struct{})
}

// Events returns a session's events so far, and a channel that is closed at the next one.
func (s *Server) Events(session string) (events []Event, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[session]
	return slices.Clone(c.events), c.changed
}

// with calls do with a session. There is none that was deleted.
func (s *Server) with(session string, do func(*conversation) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(session)
	if err != nil {
		return fmt.Errorf("session %s: %w", session, err)
	}
	return do(c)
}
