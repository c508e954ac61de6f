package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// View is a modal that an app has opened for somebody.
type View struct {
	ID, User string
	// Open reports whether it is still on the screen: the app has not taken it, and nobody has closed it.
	Open bool
	// Sent is the app's description of it.
	Sent struct {
		Type       string            `json:"type"`
		CallbackID string            `json:"callback_id"`
		Metadata   string            `json:"private_metadata"`
		Title      Text              `json:"title"`
		Submit     Text              `json:"submit"`
		Close      Text              `json:"close"`
		Blocks     []json.RawMessage `json:"blocks"`
	}
	// Raw is the view as it came.
	Raw string
}

// Text is one of Block Kit's.
type Text struct {
	Text string `json:"text"`
}

// Kinds of inputs.
const (
	InputText   = "plain_text_input"
	InputRadio  = "radio_buttons"
	InputSelect = "static_select"
	InputMulti  = "multi_static_select"
)

// Input is a field of a modal (docs.slack.dev/reference/block-kit/blocks/input-block).
type Input struct {
	// Block is its identifier among the others, and Kind one of the above.
	Block, Kind string
	Label       string
	Optional    bool
	Options     []Option
	// Initial is its first value: a text, or values of options.
	Initial []string

	action string
}

// Option is one of an Input's.
type Option struct{ Text, Value string }

// Inputs are the fields of the modal, those aside whose kind is not served.
func (v View) Inputs() []Input {
	var list []Input
	for _, raw := range v.Sent.Blocks {
		var b struct {
			Type     string `json:"type"`
			Block    string `json:"block_id"`
			Label    Text   `json:"label"`
			Optional bool   `json:"optional"`
			Element  struct {
				Type     string   `json:"type"`
				Action   string   `json:"action_id"`
				Options  []option `json:"options"`
				Text     string   `json:"initial_value"`
				Chosen   *option  `json:"initial_option"`
				Selected []option `json:"initial_options"`
			} `json:"element"`
		}
		if json.Unmarshal(raw, &b) != nil || b.Type != "input" {
			continue
		}
		in := Input{Block: b.Block, Kind: b.Element.Type, Label: b.Label.Text, Optional: b.Optional,
			action: b.Element.Action}
		for _, o := range b.Element.Options {
			in.Options = append(in.Options, Option{o.Text.Text, o.Value})
		}
		switch in.Kind {
		case InputText:
			in.Initial = []string{b.Element.Text}
		case InputRadio, InputSelect:
			if b.Element.Chosen != nil {
				in.Initial = []string{b.Element.Chosen.Value}
			}
		case InputMulti:
			for _, o := range b.Element.Selected {
				in.Initial = append(in.Initial, o.Value)
			}
		default:
			continue
		}
		list = append(list, in)
	}
	return list
}

type option struct {
	Text  Text   `json:"text"`
	Value string `json:"value"`
}

// state returns Slack's description of the field with these values. Values that are not offered count for nothing.
func (in *Input) state(values []string) map[string]any {
	if in.Kind == InputText {
		state := map[string]any{"type": in.Kind, "value": nil}
		if len(values) > 0 && values[0] != "" {
			state["value"] = values[0]
		}
		return state
	}
	chosen := []any{}
	for _, o := range in.Options {
		if slices.Contains(values, o.Value) {
			chosen = append(chosen, map[string]any{"text": map[string]any{"type": "plain_text", "text": o.Text,
				"emoji": true}, "value": o.Value})
		}
	}
	if in.Kind == InputMulti {
		return map[string]any{"type": in.Kind, "selected_options": chosen}
	}
	state := map[string]any{"type": in.Kind, "selected_option": nil}
	if len(chosen) > 0 {
		state["selected_option"] = chosen[0]
	}
	return state
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

// longestTitle is the most of a modal's title and of its two buttons, in characters.
const longestTitle = 24

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
	v := View{ID: fmt.Sprintf("V%010d", s.serial), User: user, Raw: raw, Open: true}
	if json.Unmarshal([]byte(raw), &v.Sent) != nil || v.Sent.Type != "modal" || v.Sent.Title.Text == "" {
		return nil, refuse("invalid_arguments")
	}
	if len(raw) > largestView {
		return nil, refuse("view_too_large")
	}
	if !validBlocks(v.Sent.Blocks, mostViewBlocks) {
		return nil, refuse("invalid_arguments")
	}
	for _, t := range []Text{v.Sent.Title, v.Sent.Submit, v.Sent.Close} {
		if utf8.RuneCountInString(t.Text) > longestTitle {
			return nil, refuse("invalid_arguments")
		}
	}
	if len(v.Inputs()) > 0 && v.Sent.Submit.Text == "" {
		return nil, refuse("invalid_arguments")
	}
	s.views = append(s.views, v)
	return answer{"view": map[string]string{"id": v.ID}}, nil
}

// Views returns the modals that were opened, in order.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.views)
}

// Submit sends a modal that user sees, with the state of its fields: by block and action, what Slack says of the
// element. It returns what the app answers, such as what is wrong with a field; anything else closes the modal.
func (s *Server) Submit(ctx context.Context, user string, v View, values map[string]map[string]any) (string, error) {
	s.mu.Lock()
	// A modal belongs to the person's workspace, also if an app that is installed in another one opened it.
	team := s.teamOf(user)
	s.mu.Unlock()
	answer, err := s.Deliver(ctx, KindAction, map[string]any{
		"type": "view_submission", "team": map[string]string{"id": team},
		"user": map[string]string{"id": user, "team_id": team},
		"view": map[string]any{
			"id": v.ID, "type": "modal", "app_installed_team_id": s.TeamID, "callback_id": v.Sent.CallbackID,
			"private_metadata": v.Sent.Metadata,
			"state":            map[string]any{"values": values},
		},
	}, 0)
	if err == nil && problemsIn(answer) == nil {
		s.closeView(user, v.ID)
	}
	return string(answer), err
}

// problemsIn returns the errors in fields that an app reports, by block; nil if it has taken the modal.
func problemsIn(answer []byte) map[string]string {
	var told struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
	}
	if json.Unmarshal(answer, &told) != nil || told.Action != "errors" {
		return nil
	}
	return told.Errors
}

// ErrNoView means that nobody sees a modal of that identifier.
var ErrNoView = errors.New("there is no such modal on the screen: it was sent or closed")

// Fill writes into a modal that user sees, and sends it. values are by block: a text, or the values of the options that
// are chosen. It returns what the app says is wrong with fields, by block; the modal stays then. It fails as Deliver
// does, and with ErrNoView.
func (s *Server) Fill(ctx context.Context, user, view string, values map[string][]string) (problems map[string]string,
	err error) {
	views := s.Views()
	i := slices.IndexFunc(views, func(v View) bool { return v.ID == view && v.User == user && v.Open })
	if i < 0 {
		return nil, ErrNoView
	}
	state := map[string]map[string]any{}
	for _, in := range views[i].Inputs() {
		state[in.Block] = map[string]any{in.action: in.state(values[in.Block])}
	}
	answer, err := s.Submit(ctx, user, views[i], state)
	if err != nil {
		return nil, err
	}
	return problemsIn([]byte(answer)), nil
}

// CloseView closes a modal that user sees. The app gets no event: it would have to request that.
func (s *Server) CloseView(user, view string) error {
	if !s.closeView(user, view) {
		return ErrNoView
	}
	return nil
}

func (s *Server) closeView(user, view string) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.views {
		if v := &s.views[i]; v.ID == view && v.User == user && v.Open {
			v.Open = false
			s.touch()
			return true
		}
	}
	return false
}
