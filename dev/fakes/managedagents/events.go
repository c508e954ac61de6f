package managedagents

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/script"
)

// emit adds an event, with an ID and a time unless it has them, and returns its ID. mu is held.
func (s *Server) emit(c *conversation, e Event) string {
	if _, ok := e["id"]; !ok {
		e["id"] = s.newID("sevt")
	}
	c.updated = s.tick()
	if _, ok := e["processed_at"]; !ok {
		e["processed_at"] = c.updated.Format(time.RFC3339Nano)
	}
	c.events = append(c.events, e)
	close(c.changed)
	c.changed = make(chan struct{})
	return e.text("id")
}

func (s *Server) takeEvents(w http.ResponseWriter, id string, body []byte) error {
	var in struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := decode(body, &in); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(id)
	if err != nil {
		return err
	}
	if c.status == terminated {
		return anthropic.Invalid("the session has terminated")
	}
	taken := []Event{}
	for _, raw := range in.Events {
		e, err := s.take(c, raw)
		if err != nil {
			return err
		}
		taken = append(taken, e)
	}
	return reply(w, map[string]any{"data": taken})
}

// take takes in an event of the user's. mu is held.
func (s *Server) take(c *conversation, raw json.RawMessage) (Event, error) {
	e := Event{}
	if err := decode(raw, &e); err != nil {
		return nil, err
	}
	delete(e, "id")
	switch e.text("type") {
	case "user.message":
		return e, s.told(c, e)
	case "user.interrupt":
		s.interrupt(c, e)
		return e, nil
	case "user.custom_tool_result":
		return e, s.result(c, e)
	}
	return nil, anthropic.Invalid("events.0.type: %q is not supported by the fake", e.text("type"))
}

// told lets the agent answer a message.
func (s *Server) told(c *conversation, e Event) error {
	text, err := checkContent(e["content"])
	if err != nil {
		return err
	}
	if len(c.open) > 0 {
		return anthropic.Invalid("the session waits for results of custom tools")
	}
	s.emit(c, e)
	c.text = text
	s.turn(c)
	return nil
}

// interrupt ends the turn. Open calls get no result any more.
func (s *Server) interrupt(c *conversation, e Event) {
	s.emit(c, e)
	for _, id := range c.open {
		c.used[id] = true
	}
	c.open, c.results = nil, nil
	s.rest(c)
}

// result takes the result of a call.
func (s *Server) result(c *conversation, e Event) error {
	id := e.text("custom_tool_use_id")
	text, err := checkContent(e["content"])
	switch {
	case c.used[id]:
		return anthropic.Invalid("custom_tool_use_id: %s has a result already, or was interrupted", id)
	case !slices.Contains(c.open, id):
		return anthropic.Invalid("custom_tool_use_id: %s is not a pending call", id)
	case err != nil:
		return err
	}
	c.used[id] = true
	c.open = slices.DeleteFunc(c.open, func(open string) bool { return open == id })
	c.results = append(c.results, text)
	s.emit(c, e)
	if len(c.open) > 0 {
		s.rest(c)
		return nil
	}
	s.turn(c)
	return nil
}

// checkContent checks blocks as the API does, and returns their text.
func checkContent(content any) (string, error) {
	blocks, _ := content.([]any)
	if len(blocks) == 0 {
		return "", anthropic.Invalid("content: at least one block is required")
	}
	var texts []string
	for i, b := range blocks {
		block, _ := b.(map[string]any)
		switch text, _ := block["text"].(string); block["type"] {
		case "text":
			if strings.TrimSpace(text) == "" {
				return "", anthropic.Invalid("content.%d.text: text content blocks must contain non-whitespace text", i)
			}
			texts = append(texts, text)
		case "image":
			source, _ := block["source"].(map[string]any)
			kind, _ := source["media_type"].(string)
			if source["type"] != "base64" ||
				!slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
				return "", anthropic.Invalid("content.%d.source.media_type: %q is not supported", i, kind)
			}
		default:
			return "", anthropic.Invalid("content.%d.type: %v is not supported by the fake", i, block["type"])
		}
	}
	return strings.Join(texts, "\n"), nil
}

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, id string) error {
	query := r.URL.Query()
	since, err := time.Time{}, error(nil)
	if text := query.Get("created_at[gte]"); text != "" {
		if since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return anthropic.Invalid("created_at[gte]: is not a time")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(id)
	if err != nil {
		return err
	}
	list := []any{}
	for _, e := range c.events {
		at, err := time.Parse(time.RFC3339Nano, e.text("processed_at"))
		if types := query["types[]"]; len(types) > 0 && !slices.Contains(types, e.text("type")) || err == nil &&
			at.Before(since) {
			continue
		}
		list = append(list, e)
	}
	if query.Get("order") == "desc" {
		slices.Reverse(list)
	}
	return s.page(w, r, list)
}

// stream sends the events from now on.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, id string) error {
	s.mu.Lock()
	c, err := s.find(id)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if s.broken == nil {
		s.broken = make(chan struct{})
	}
	next, broken := len(c.events), s.broken
	s.mu.Unlock()
	out := script.NewStream(w, r)
	out.Send("ping", map[string]any{"type": "ping"})
	for {
		s.mu.Lock()
		fresh, changed, deleted := slices.Clone(c.events[next:]), c.changed, c.deleted
		s.mu.Unlock()
		next += len(fresh)
		for _, e := range fresh {
			if !s.Mute {
				out.Send("message", e)
			}
		}
		if deleted {
			return nil
		}
		select {
		case <-changed:
		case <-broken:
			out.Break()
		case <-r.Context().Done():
			return nil
		}
	}
}
