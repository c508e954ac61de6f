package slack

import (
	"context"
	"encoding/json"
	"fmt"
)

// View is a modal that an app has opened for somebody.
type View struct {
	ID, User string
	// Sent is what the app described it with.
	Sent struct {
		Type       string            `json:"type"`
		CallbackID string            `json:"callback_id"`
		Metadata   string            `json:"private_metadata"`
		Blocks     []json.RawMessage `json:"blocks"`
	}
	// Raw is that as it came.
	Raw string
}

// trigger makes an identifier with which a modal can be opened once (docs.slack.dev/surfaces/modals). mu is held.
func (s *Server) trigger(user string) string {
	s.serial++
	id := fmt.Sprintf("%d.2.trigger", s.serial)
	if s.triggers == nil {
		s.triggers = map[string]string{}
	}
	if !s.LateTriggers {
		s.triggers[id] = user
	}
	return id
}

// openView answers views.open.
func (s *Server) openView(c *call) (answer, error) {
	user, ok := s.triggers[c.text("trigger_id")]
	if !ok {
		return nil, refuse("expired_trigger_id")
	}
	delete(s.triggers, c.text("trigger_id"))
	raw := c.text("view")
	if nested, ok := c.arguments["view"].(map[string]any); ok {
		encoded, err := json.Marshal(nested)
		if err != nil {
			return nil, refuse("invalid_arguments")
		}
		raw = string(encoded)
	}
	s.serial++
	v := View{ID: fmt.Sprintf("V%010d", s.serial), User: user, Raw: raw}
	if json.Unmarshal([]byte(raw), &v.Sent) != nil || v.Sent.Type != "modal" || len(v.Sent.Blocks) > 100 {
		return nil, refuse("invalid_arguments")
	}
	s.views = append(s.views, v)
	return answer{"view": map[string]string{"id": v.ID}}, nil
}

// Views returns the modals that were opened, in order.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]View(nil), s.views...)
}

// Submit sends a modal that user sees, with the state of its fields: by block and action, what Slack says of the element. It returns what the app
// answers, such as what is wrong with a field; empty closes the modal.
func (s *Server) Submit(ctx context.Context, user string, v View, values map[string]map[string]any) (string, error) {
	answer, err := s.Deliver(ctx, KindAction, map[string]any{
		"type": "view_submission", "team": map[string]string{"id": s.TeamID}, "user": map[string]string{"id": user},
		"view": map[string]any{
			"id": v.ID, "type": "modal", "callback_id": v.Sent.CallbackID, "private_metadata": v.Sent.Metadata,
			"state": map[string]any{"values": values},
		},
	}, 0)
	return string(answer), err
}
