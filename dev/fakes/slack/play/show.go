package play

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// show writes down what has changed.
func (s *stage) show() error {
	for _, m := range s.slack.Messages() {
		if err := s.once(m.Channel+":"+m.TS, s.seen(m)); err != nil {
			return err
		}
	}
	return s.showModals()
}

// once writes down what stands under key, unless it is the same as before.
func (s *stage) once(key, text string) error {
	if s.shown[key] == text {
		return nil
	}
	s.shown[key] = text
	_, err := io.WriteString(s.out, text+"\n")
	return err
}

// seen is a message as people see it.
func (s *stage) seen(m slack.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", s.where(m), s.person(m.Author))
	if m.Ephemeral != "" {
		fmt.Fprintf(&b, " (to %s alone)", s.person(m.Ephemeral))
	}
	b.WriteString("\n")
	for _, line := range s.lines(m) {
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}

// where is the channel, and whether the message is in a thread.
func (s *stage) where(m slack.Message) string {
	place := m.Channel
	for _, c := range s.slack.Channels() {
		if c.ID == m.Channel && c.With != "" {
			place = s.person(c.With) + " and " + s.name
		} else if c.ID == m.Channel {
			place = "#" + c.Name
		}
	}
	if m.Thread != "" && m.Thread != m.TS {
		place += " ↳"
	}
	return place
}

func (s *stage) person(id string) string {
	for _, u := range s.slack.Users() {
		if u.ID == id {
			return u.Name
		}
	}
	return s.name
}

// marks are the beginnings of cards.
var marks = map[string]string{"pending": "✋", "in_progress": "⏳", "complete": "✓", "error": "✗"}

// lines are the text, cards, blocks and buttons.
func (s *stage) lines(m slack.Message) []string {
	var list []string
	add := func(text string) {
		if text = strings.TrimSpace(s.plain(text)); text != "" {
			list = append(list, strings.Split(text, "\n")...)
		}
	}
	for _, p := range m.Parts {
		add(p.Text)
		for _, t := range m.Tasks {
			if t.ID == p.Task && p.Task != "" {
				add(strings.TrimSuffix(fmt.Sprintf("[%s %s] %s", marks[t.Status], t.Title, t.Output), " "))
			}
		}
	}
	if m.Parts == nil && m.Blocks == "" {
		add(m.Text)
	}
	for _, b := range blocks(m.Blocks) {
		add(b.text())
	}
	for _, id := range m.Files {
		if f, ok := s.slack.File(id); ok {
			add(fmt.Sprintf("[file %s, %d bytes]", f.Name, len(f.Data)))
		}
	}
	row := ""
	for _, b := range buttons(m) {
		row += "  ( " + b.label + " )"
	}
	add(row)
	return list
}

var (
	control = lazyregexp.New(`<([@!#])([^<>|]*)(?:\|([^<>]*))?>`)
	moment  = lazyregexp.New(`<!date[^<>]*>`)
)

// plain is text without Slack's marks. Times are left out, so that a scene that is acted again reads the same.
func (s *stage) plain(text string) string {
	text = moment().ReplaceAllString(text, "(time)")
	text = control().ReplaceAllStringFunc(text, func(found string) string {
		m := control().FindStringSubmatch(found)
		if m[1] == "@" {
			return "@" + s.person(m[2])
		}
		return m[1] + m[2]
	})
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

// block is a block as people see it.
type block struct {
	Type     string
	Text     struct{ Text string }
	Elements []struct {
		Type     string
		Text     json.RawMessage
		ActionID string `json:"action_id"`
		Value    string
		URL      string
		Positive labelled                `json:"positive_button"`
		Negative labelled                `json:"negative_button"`
		Elements []struct{ Text string } // of rich text
	}
}

type labelled struct {
	Text  struct{ Text string }
	Value string
}

func blocks(raw string) []block {
	var list []block
	_ = json.Unmarshal([]byte(raw), &list) // none is a message without blocks
	return list
}

// text returns the text of a section, a context or rich text.
func (b block) text() string {
	text := b.Text.Text
	if b.Type == "rich_text" {
		var lines []string
		for _, e := range b.Elements {
			line := ""
			for _, part := range e.Elements {
				line += part.Text
			}
			if e.Type == "rich_text_preformatted" {
				line = "  " + strings.ReplaceAll(line, "\n", "\n  ")
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	if b.Type == "context" {
		for _, e := range b.Elements {
			var part string
			_ = json.Unmarshal(e.Text, &part) // what is no text has none
			text += part
		}
	}
	return text
}

// button is one that can be pressed. page reports whether it leads to an address, which nothing follows from.
type button struct {
	label, action, value string
	page                 bool
}

func buttons(m slack.Message) []button {
	var list []button
	for _, b := range blocks(m.Blocks) {
		for _, e := range b.Elements {
			var l labelled
			switch {
			case e.Type == "feedback_buttons":
				list = append(list, button{e.Positive.Text.Text, e.ActionID, e.Positive.Value, false},
					button{e.Negative.Text.Text, e.ActionID, e.Negative.Value, false})
			case e.Type == "button" && json.Unmarshal(e.Text, &l.Text) == nil:
				list = append(list, button{l.Text.Text, e.ActionID, e.Value, e.URL != ""})
			}
		}
	}
	return list
}
