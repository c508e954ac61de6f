package play

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/fakes/slack"
)

// modal is one that somebody has on the screen.
type modal struct {
	// from is the message whose button has opened it.
	from slack.Message
	// written has the entered values by block, and problems the bot's remarks on them.
	written  map[string][]string
	problems map[string]string
}

// top is the modal that a user sees, or not ok.
func (s *stage) top(user string) (v slack.View, ok bool) {
	for _, v := range slices.Backward(s.slack.Views()) {
		if v.Open && v.User == user {
			return v, true
		}
	}
	return v, false
}

// modal is a view as far as it is known.
func (s *stage) modal(v slack.View) *modal {
	m := s.modals[v.ID]
	if m == nil {
		m = &modal{written: map[string][]string{}}
		for _, in := range v.Inputs() {
			m.written[in.Block] = in.Initial
		}
		s.modals[v.ID] = m
	}
	return m
}

// fill writes into a field of the modal that the user sees.
func (s *stage) fill(user, label, text string) error {
	v, ok := s.top(user)
	if !ok {
		return fmt.Errorf("there is no modal to fill in %q", label)
	}
	inputs := v.Inputs()
	i := slices.IndexFunc(inputs, func(in slack.Input) bool { return in.Label == label })
	if i < 0 {
		return fmt.Errorf("the modal has no field %q", label)
	}
	values, err := chosen(&inputs[i], text)
	if err == nil {
		s.modal(v).written[inputs[i].Block] = values
	}
	return err
}

// chosen are the values that a text stands for: itself, or options, of which several have commas between them.
func chosen(in *slack.Input, text string) (values []string, err error) {
	parts := []string{text}
	switch in.Kind {
	case slack.InputText:
		return parts, nil
	case slack.InputMulti:
		parts = strings.Split(text, ",")
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		i := slices.IndexFunc(in.Options, func(o slack.Option) bool { return o.Text == part })
		if i < 0 && part != "" {
			return nil, fmt.Errorf("%q has no option %q: it has %s", in.Label, part, strings.Join(titles(in), ", "))
		}
		if i >= 0 {
			values = append(values, in.Options[i].Value)
		}
	}
	return values, nil
}

func titles(in *slack.Input) (list []string) {
	for _, o := range in.Options {
		list = append(list, o.Text)
	}
	return list
}

// send sends the modal that the user sees, and waits for what follows if the bot takes it.
func (s *stage) send(ctx context.Context, user string, v slack.View) (err error) {
	m := s.modal(v)
	if m.problems, err = s.slack.Fill(ctx, user, v.ID, m.written); err != nil || len(m.problems) > 0 {
		return err
	}
	return s.until(ctx, func() bool { return s.changed(m.from) && s.settled("") })
}

// showModals writes the modals down that have come up, or that the bot has sent back.
func (s *stage) showModals() error {
	for _, v := range s.slack.Views() {
		if !v.Open {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "modal of %s  %s\n", s.person(v.User), v.Sent.Title.Text)
		for _, line := range s.modalLines(v) {
			b.WriteString("    " + line + "\n")
		}
		if err := s.once(v.ID, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// modalLines are the texts, fields and buttons. A field is shown as it came: what was written stands in the scene.
func (s *stage) modalLines(v slack.View) (list []string) {
	problems := maps.Clone(s.modal(v).problems)
	for _, b := range blocks("[" + joined(v) + "]") {
		if text := strings.TrimSpace(s.plain(b.text())); text != "" {
			list = append(list, strings.Split(text, "\n")...)
		}
	}
	for _, in := range v.Inputs() {
		list = append(list, "["+field(&in)+"]")
		if problem := problems[in.Block]; problem != "" {
			list = append(list, "  ! "+problem)
			delete(problems, in.Block)
		}
	}
	for _, block := range slices.Sorted(maps.Keys(problems)) {
		list = append(list, "! "+problems[block])
	}
	return append(list, fmt.Sprintf("( %s )  ( %s )", v.Sent.Submit.Text, v.Sent.Close.Text))
}

// joined are the blocks of a modal.
func joined(v slack.View) string {
	var list []string
	for _, raw := range v.Sent.Blocks {
		list = append(list, string(raw))
	}
	return strings.Join(list, ",")
}

// field is a field as it came: its label, what is in it, and what can be chosen.
func field(in *slack.Input) string {
	text := in.Label
	if in.Optional {
		text += " (optional)"
	}
	var initial []string
	for _, value := range in.Initial {
		if i := slices.IndexFunc(in.Options, func(o slack.Option) bool { return o.Value == value }); i >= 0 {
			value = in.Options[i].Text
		}
		initial = append(initial, value)
	}
	text += ": " + strings.Join(initial, ", ")
	if len(in.Options) > 0 {
		text = strings.TrimSuffix(text, " ") + " (" + strings.Join(titles(in), ", ") + ")"
	}
	return strings.TrimSpace(text)
}
