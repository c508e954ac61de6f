package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Said is a message that a person writes.
type Said struct {
	User, Channel, Text string
	// Thread is the first message of the thread, or empty for a message of its own.
	Thread string
	// Files are those of AddFile that come with it.
	Files []string
}

// Say makes a person write a message, without telling the app. It returns the message's identifier.
func (s *Server) Say(said Said) (ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ts = s.timestamp()
	s.messages = append(s.messages, Message{
		Channel: said.Channel, Author: said.User, Text: said.Text, TS: ts, Thread: said.Thread, Files: said.Files,
	})
	s.touch()
	return ts
}

// Tell makes a person write a message and sends the app an event: for a mention in a channel, or a direct message. It
// returns the message's identifier.
func (s *Server) Tell(ctx context.Context, said Said) (ts string, err error) {
	ts = s.Say(said)
	_, err = s.Deliver(ctx, KindEvent, s.Event(said, ts), 0)
	return ts, err
}

// Event is the event about a message that the app gets.
func (s *Server) Event(said Said, ts string) map[string]any {
	event := map[string]any{"type": "app_mention", "user": said.User, "text": said.Text, "ts": ts,
		"channel": said.Channel, "event_ts": ts}
	if said.Thread != "" {
		event["thread_ts"] = said.Thread
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var files []any
	for _, id := range said.Files {
		files = append(files, s.files[id].describe(id))
	}
	if files != nil {
		event["files"] = files
	}
	if strings.HasPrefix(said.Channel, "D") {
		event["type"], event["channel_type"] = "message", "im"
	}
	shared := s.shared(said.Channel)
	if shared {
		event["user_team"], event["source_team"] = s.teamOf(said.User), s.teamOf(said.User)
	}
	s.serial++
	envelope := s.envelope(fmt.Sprintf("Ev%010d", s.serial), event)
	envelope["is_ext_shared_channel"] = shared
	return envelope
}

// teamOf is the workspace of a person. The caller holds mu.
func (s *Server) teamOf(user string) string {
	if u := s.users[user]; u != nil && u.Team != "" {
		return u.Team
	}
	return s.TeamID
}

// shared reports whether people of another workspace are members of a channel (Slack Connect): events in it name their
// author's workspace (docs.slack.dev/apis/slack-connect). The caller holds mu.
func (s *Server) shared(id string) bool {
	ch := s.channels[id]
	return ch != nil && slices.ContainsFunc(ch.members, func(user string) bool { return s.teamOf(user) != s.TeamID })
}

// Envelope is an event of Team in the form for an app (docs.slack.dev/apis/events-api).
func Envelope(id string, event map[string]any) map[string]any {
	return (&Server{TeamID: Team}).envelope(id, event)
}

func (s *Server) envelope(id string, event map[string]any) map[string]any {
	return map[string]any{
		"type": "event_callback", "token": "unused", "team_id": s.TeamID, "api_app_id": "A0000000000", "event_id": id,
		"event_time": 1, "event": event,
	}
}

// Click presses a button of a message: the app gets the action and its value.
func (s *Server) Click(ctx context.Context, user string, m Message, action, value string) error {
	s.mu.Lock()
	trigger, team := s.trigger(user), s.teamOf(user)
	s.mu.Unlock()
	_, err := s.Deliver(ctx, KindAction, map[string]any{
		"type": "block_actions", "team": map[string]string{"id": s.TeamID},
		"user": map[string]string{"id": user, "team_id": team}, "trigger_id": trigger,
		"channel": map[string]string{"id": m.Channel}, "container": map[string]any{"type": "message",
			"message_ts": m.TS, "channel_id": m.Channel, "thread_ts": m.Thread},
		"message": map[string]string{"ts": m.TS, "thread_ts": m.Thread, "text": m.Text},
		"actions": []any{map[string]string{"type": "button", "block_id": "b", "action_id": action, "value": value,
			"action_ts": "1.0"}},
	}, 0)
	return err
}

// Stop presses the stop button that Slack shows while the agent's session in a thread is processing.
func (s *Server) Stop(ctx context.Context, user, channel, thread string) error {
	s.mu.Lock()
	s.serial++
	id := fmt.Sprintf("Ev%010d", s.serial)
	s.mu.Unlock()
	_, err := s.Deliver(ctx, KindEvent, s.envelope(id, map[string]any{
		"type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": user, "event_ts": thread,
		"streaming_message_ts": []string{},
	}), 0)
	return err
}

// Command types a slash command, and returns what the app answers at once. An ephemeral answer becomes a message.
func (s *Server) Command(ctx context.Context, user, channel, command, text string) (string, error) {
	raw, err := s.Deliver(ctx, KindCommand, map[string]string{
		"team_id": s.TeamID, "user_id": user, "channel_id": channel, "command": command, "text": text,
		"trigger_id": "1.2.expired",
	}, 0)
	var told struct {
		Type string `json:"response_type"`
		Text string `json:"text"`
	}
	if err == nil && json.Unmarshal(raw, &told) == nil && told.Type == "ephemeral" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.messages = append(s.messages, Message{Channel: channel, Ephemeral: user, Text: told.Text, TS: s.timestamp()})
		s.touch()
	}
	return string(raw), err
}

// group is a user group.
type group struct {
	id, handle string
	members    []string
}

// AddGroup adds a user group, whose handle is without "@".
func (s *Server) AddGroup(handle string, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, group{fmt.Sprintf("S%08d", len(s.groups)+1), handle, members})
}

func (s *Server) userGroups(*call) (answer, error) {
	list := []any{}
	for _, g := range s.groups {
		list = append(list, map[string]any{"id": g.id, "handle": g.handle, "name": g.handle, "users": g.members})
	}
	return answer{"usergroups": list}, nil
}

// page limits the messages in one answer of conversations.replies.
const page = 50

func (s *Server) replies(c *call) (answer, error) {
	thread := c.text("ts")
	var list []any
	for _, m := range s.messages {
		if m.Channel != c.text("channel") || m.TS != thread && m.Thread != thread || m.Ephemeral != "" ||
			m.TS <= c.text("oldest") {
			continue
		}
		message := map[string]any{"type": "message", "user": m.Author, "text": m.Text, "ts": m.TS, "thread_ts": thread}
		if u := s.users[m.Author]; u == nil {
			message["bot_id"] = "B" + strings.TrimPrefix(m.Author, "U")
		}
		list = append(list, message)
	}
	if list == nil && c.text("oldest") == "" {
		return nil, refuse("thread_not_found")
	}
	from := 0
	if cursor := c.text("cursor"); cursor != "" {
		if _, err := fmt.Sscanf(cursor, "from-%d", &from); err != nil || from > len(list) {
			return nil, refuse("invalid_cursor")
		}
	}
	to := min(from+page, len(list))
	result := answer{"messages": slices.Clone(list[from:to]), "has_more": to < len(list)}
	if to < len(list) {
		result["response_metadata"] = map[string]string{"next_cursor": fmt.Sprintf("from-%d", to)}
	}
	return result, nil
}

// AddDM opens the direct message of a person with the bot.
func (s *Server) AddDM(id, user, bot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id] = &channel{id: id, user: user, members: []string{bot, user}}
}
