package slack

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Team is the identifier of a workspace that has been given no other one.
const Team = "T0000000000"

func (s *Server) authTest(c *call) (answer, error) {
	return answer{"url": "https://example.slack.com/", "team": "Example", "user": "hako", "user_id": c.bot,
		"team_id": s.TeamID, "bot_id": "B" + strings.TrimPrefix(c.bot, "U")}, nil
}

func (s *Server) usersInfo(c *call) (answer, error) {
	u := s.users[c.text("user")]
	switch {
	case u == nil:
		return nil, refuse("user_not_found")
	case u.Hidden:
		return nil, refuse("user_not_visible")
	}
	return answer{"user": s.describe(c, u)}, nil
}

// conversationInfo describes a channel of which the app is a member.
func (s *Server) conversationInfo(c *call) (answer, error) {
	channel := s.channels[c.text("channel")]
	if channel == nil || !slices.Contains(channel.members, c.bot) {
		return nil, refuse("channel_not_found")
	}
	return answer{"channel": answer{"id": channel.id, "name": channel.name, "is_channel": true}}, nil
}

// usersList serves everybody, also those who are gone, in the order of their IDs. It reads a form alone, as Slack's
// reading methods do.
func (s *Server) usersList(c *call) (answer, error) {
	ids := slices.Sorted(maps.Keys(s.users))
	limit, from := 100, 0
	if _, err := fmt.Sscan(c.text("limit"), &limit); c.text("limit") != "" &&
		(err != nil || limit < 1 || limit > 1000) {
		return nil, refuse("invalid_limit")
	}
	if cursor := c.text("cursor"); cursor != "" {
		if _, err := fmt.Sscanf(cursor, "from-%d", &from); err != nil || from > len(ids) {
			return nil, refuse("invalid_cursor")
		}
	}
	to, next := min(from+limit, len(ids)), ""
	if to < len(ids) {
		next = fmt.Sprintf("from-%d", to)
	}
	members := []any{}
	for _, id := range ids[from:to] {
		members = append(members, s.describe(c, s.users[id]))
	}
	return answer{"members": members, "response_metadata": map[string]string{"next_cursor": next}}, nil
}

// describe returns a person as Slack's API does. E-mail addresses need a scope of their own.
func (s *Server) describe(c *call, u *User) map[string]any {
	user := map[string]any{"id": u.ID, "team_id": s.teamOf(u.ID), "name": u.Name, "real_name": u.Real, "is_bot": u.Bot,
		"deleted": u.Deleted}
	if u.Enterprise != "" {
		user["enterprise_user"] = map[string]any{"id": u.ID, "enterprise_id": u.Enterprise, "teams": u.Teams}
	}
	profile := map[string]any{"real_name": u.Real, "display_name": u.Name}
	if slices.Contains(c.scopes, "users:read.email") {
		profile["email"], user["is_email_confirmed"] = u.Email, !u.Unconfirmed
	}
	user["profile"] = profile
	if c.flag("include_locale") {
		user["locale"] = u.Locale
	}
	return user
}

// open opens the direct message with one user. Several users, a group message, are not served.
func (s *Server) open(c *call) (answer, error) {
	ids := strings.Split(c.text("users"), ",")
	if ids[0] == "" {
		return nil, refuse("users_list_not_supplied")
	}
	if len(ids) > 1 {
		return nil, refuse("too_many_users")
	}
	u := s.users[ids[0]]
	switch {
	case u == nil:
		return nil, refuse("user_not_found")
	case u.Deleted:
		return nil, refuse("user_disabled")
	case u.Bot:
		return nil, refuse("is_bot")
	}
	id := "D" + strings.TrimLeft(u.ID, "UW")
	if s.channels[id] != nil {
		return answer{"no_op": true, "already_open": true, "channel": map[string]string{"id": id}}, nil
	}
	s.channels[id] = &channel{id: id, user: u.ID, members: []string{c.bot, u.ID}}
	return answer{"channel": map[string]string{"id": id}}, nil
}

// longestText is the length at which Slack cuts a text, in characters.
const longestText = 40000

func (s *Server) post(c *call) (answer, error) {
	ch, text := s.channels[c.text("channel")], c.text("text")
	switch {
	case ch == nil:
		return nil, refuse("channel_not_found")
	case ch.archived:
		return nil, refuse("is_archived")
	case !slices.Contains(ch.members, c.bot):
		return nil, refuse("not_in_channel")
	case strings.TrimSpace(text) == "" && c.arguments["blocks"] == nil && c.arguments["attachments"] == nil:
		return nil, refuse("no_text")
	case !validMessage(c):
		return nil, refuse("invalid_blocks")
	}
	result := answer{"channel": ch.id}
	if n := utf8.RuneCountInString(text); n > longestText {
		text = string([]rune(text)[:longestText])
		result["warning"], result["response_metadata"] = "message_truncated",
			map[string]any{"warnings": []string{"message_truncated"}}
	}
	m := Message{
		Channel: ch.id, User: ch.user, Text: text, TS: s.timestamp(), Sent: maps.Clone(c.arguments),
		Author: c.bot, Thread: c.text("thread_ts"), Blocks: c.text("blocks"),
	}
	s.messages = append(s.messages, m)
	result["ts"] = m.TS
	result["message"] = map[string]any{"type": "message", "user": c.bot, "text": m.Text, "ts": m.TS}
	return result, nil
}

// timestamp is the identifier of a new message: no two are the same.
func (s *Server) timestamp() string {
	now := time.Now().Truncate(time.Microsecond)
	if !now.After(s.last) {
		now = s.last.Add(time.Microsecond)
	}
	s.last = now
	return fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
}

// control finds what Slack takes for more than text: <!channel>, <@U…>, <#C…>, <https://…|shown>.
var control = regexp.MustCompile(`<[!@#]?[^<>]+>`)

// Controls returns what in the message's text Slack would take for mentions and links that were not written out.
func (m Message) Controls() []string { return control.FindAllString(m.Text, -1) }
