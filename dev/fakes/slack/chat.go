package slack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// longestStream is the most markdown of one call, in characters.
const longestStream = 12000

// message returns the bot's message that a call is about.
func (s *Server) message(c *call) (*Message, error) {
	for i := range s.messages {
		m := &s.messages[i]
		if m.Channel == c.text("channel") && m.TS == c.text("ts") {
			if m.Author != c.bot {
				return nil, refuse("cant_update_message")
			}
			return m, nil
		}
	}
	return nil, refuse("message_not_found")
}

func (s *Server) update(c *call) (answer, error) {
	m, err := s.message(c)
	switch {
	case err != nil:
		return nil, err
	case m.Streaming:
		return nil, refuse("streaming_state_conflict")
	case strings.TrimSpace(c.text("text")) == "" && c.arguments["blocks"] == nil:
		return nil, refuse("no_text")
	case !validMessage(c):
		return nil, refuse("invalid_blocks")
	}
	m.Text, m.Sent = c.text("text"), maps.Clone(c.arguments)
	if c.arguments["blocks"] != nil {
		m.Blocks = c.text("blocks")
	}
	return answer{"channel": m.Channel, "ts": m.TS, "text": m.Text}, nil
}

func (s *Server) postEphemeral(c *call) (answer, error) {
	result, err := s.post(c)
	if err != nil {
		return nil, err
	}
	s.messages[len(s.messages)-1].Ephemeral = c.text("user")
	return answer{"message_ts": result["ts"]}, nil
}

// startStream begins a message in a thread. In a channel it has to say for whom.
func (s *Server) startStream(c *call) (answer, error) {
	ch := s.channels[c.text("channel")]
	switch {
	case ch == nil:
		return nil, refuse("channel_not_found")
	case c.text("thread_ts") == "":
		return nil, refuse("invalid_thread_ts")
	case ch.user == "" && c.text("recipient_team_id") == "":
		return nil, refuse("missing_recipient_team_id")
	case ch.user == "" && c.text("recipient_user_id") == "":
		return nil, refuse("missing_recipient_user_id")
	}
	m := Message{
		Channel: ch.id, User: ch.user, TS: s.timestamp(), Author: c.bot, Thread: c.text("thread_ts"), Streaming: true,
		Sent: maps.Clone(c.arguments),
	}
	if err := m.stream(c); err != nil {
		return nil, err
	}
	s.messages = append(s.messages, m)
	return answer{"channel": ch.id, "ts": m.TS}, nil
}

func (s *Server) appendStream(c *call) (answer, error) {
	m, err := s.message(c)
	switch {
	case err != nil:
		return nil, err
	case !m.Streaming:
		return nil, refuse("message_not_in_streaming_state")
	}
	return answer{"channel": m.Channel, "ts": m.TS}, m.stream(c)
}

func (s *Server) stopStream(c *call) (answer, error) {
	result, err := s.appendStream(c)
	if err != nil {
		return nil, err
	}
	m, _ := s.message(c)
	m.Streaming, m.Blocks = false, c.text("blocks")
	s.sessions[m.Channel+":"+m.Thread] = "active"
	if status := c.text("session_status"); status != "" {
		s.sessions[m.Channel+":"+m.Thread] = status
	}
	return result, nil
}

// stream adds what a call brings: markdown, or chunks of markdown and task cards.
func (m *Message) stream(c *call) error {
	text := c.text("markdown_text")
	var chunks []struct{ Type, Text, ID, Title, Status, Output string }
	if raw := c.text("chunks"); raw != "" && json.Unmarshal([]byte(raw), &chunks) != nil {
		return refuse("invalid_chunks")
	}
	for _, chunk := range chunks {
		switch chunk.Type {
		case "markdown_text":
			text += chunk.Text
		case "task_update":
			if len(chunk.Title) > 256 || len(chunk.Output) > 256 || chunk.ID == "" {
				return refuse("invalid_chunks")
			}
		}
	}
	if utf8.RuneCountInString(text) > longestStream {
		return refuse("msg_too_long")
	}
	m.write(c.text("markdown_text"))
	for _, chunk := range chunks {
		if chunk.Type == "task_update" {
			m.task(Task{chunk.ID, chunk.Title, chunk.Status, chunk.Output})
		} else {
			m.write(chunk.Text)
		}
	}
	return nil
}

// write adds text at the end. Like task it leaves alone what Messages has handed out.
func (m *Message) write(text string) {
	m.Text += text
	if last := len(m.Parts) - 1; last >= 0 && m.Parts[last].Task == "" {
		m.Parts = slices.Clone(m.Parts)
		m.Parts[last].Text += text
	} else if text != "" {
		m.Parts = append(m.Parts, Part{Text: text})
	}
}

// task puts a task card in, or in the place of its earlier state.
func (m *Message) task(t Task) {
	for i := range m.Tasks {
		if m.Tasks[i].ID == t.ID {
			m.Tasks = slices.Clone(m.Tasks)
			m.Tasks[i] = t
			return
		}
	}
	m.Tasks, m.Parts = append(m.Tasks, t), append(m.Parts, Part{Task: t.ID})
}

func (s *Server) setStatus(c *call) (answer, error) {
	status := c.text("status")
	switch status {
	case "processing", "active", "suspended", "closed":
	default:
		return nil, refuse("invalid_arguments")
	}
	s.sessions[c.text("channel_id")+":"+c.text("thread_ts")] = status
	return answer{"status": status, "agent_status": status}, nil
}

// Session is the status of the agent's session in a thread, or empty.
func (s *Server) Session(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[channel+":"+thread]
}
