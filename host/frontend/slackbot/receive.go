package slackbot

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// message is a person's message to be answered.
type message struct {
	Workspace string `json:"workspace"`
	Team      string `json:"team"`
	Channel   string `json:"channel"`
	// Thread is the timestamp of the thread's first message, which may be this one.
	Thread string `json:"thread"`
	TS     string `json:"ts"`
	User   string `json:"user"`
	// Home is the person's workspace, if the event names it.
	Home  string       `json:"home,omitempty"`
	Text  string       `json:"text"`
	Files []attachment `json:"files,omitempty"`

	// row is the ID of a row that an earlier version stored, or empty.
	row string
}

// attachment is a file of a message.
type attachment struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int    `json:"size"`
	URL  string `json:"url"`
}

// id identifies the message for a workspace: two apps in one team may both be to answer it. Slack's event ID does not,
// because one message may cause two events: a mention and a message.
func (m *message) id() string {
	return cmp.Or(m.row, m.oldID()+":"+m.Workspace)
}

// oldID is the id of earlier versions, which confused the apps of a team.
func (m *message) oldID() string { return "message:" + m.Team + ":" + m.Channel + ":" + m.TS }

// conversation returns the key of the thread's conversation.
func (m *message) conversation() string { return conversation(m.Team, m.Channel, m.Thread) }

func conversation(team, channel, thread string) string {
	return team + ":" + channel + ":" + thread
}

// splitConversation splits a conversation's key.
func splitConversation(key string) (team, channel, thread string, ok bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// Results of events, for metrics.
const (
	resultTaken     = "taken"
	resultDuplicate = "duplicate"
	resultIgnored   = "ignored"   // not for the bot: its own messages, edits, other conversations
	resultInvalid   = "invalid"   // not understood
	resultForbidden = "forbidden" // a wrong signature, or another app's
	resultFailed    = "failed"    // it could not be stored, so Slack will repeat it
)

// Types of events, for metrics.
const (
	kindMention = "mention"
	kindDM      = "dm"
	kindStop    = "stop"
	kindAction  = "action"
	kindCommand = "command"
	kindOther   = "other"
)

// event handles an event of the Events API. An error means that it could not be stored and must not be acknowledged.
func (w *workspace) event(ctx context.Context, e slackevents.EventsAPIEvent) (err error) {
	kind, result := kindOther, resultIgnored
	observer := w.bot.options.Observer
	defer func() { observer.SlackEvent(kind, result) }()
	callback, ok := e.Data.(*slackevents.EventsAPICallbackEvent)
	if !ok {
		return nil
	}
	if w = w.of(callback.TeamID); w == nil {
		result = resultForbidden
		return nil
	}
	var m *message
	switch inner := e.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		kind, m = kindMention, w.mention(inner)
	case *slackevents.MessageEvent:
		kind, m = kindDM, w.direct(inner)
	case *slackevents.AgentSessionStoppedEvent:
		kind = kindStop
		id := callback.TeamID + ":" + cmp.Or(callback.EventID, rand.Text()) // without an ID, none is a repetition
		result, err = w.claim(ctx, id, nil, func() { w.bot.work.Go(func() { w.stopSession(inner) }) })
		return err
	}
	if m == nil {
		return nil
	}
	result, err = w.claim(ctx, m.id(), m, func() { w.bot.enqueue(m) })
	return err
}

// claim handles an event, unless it was claimed before, here or by another process. It returns the result for metrics.
func (w *workspace) claim(ctx context.Context, id string, m *message, handle func()) (result string, err error) {
	fresh, err := w.bot.journal.claim(ctx, id, m)
	switch {
	case err != nil:
		return resultFailed, err
	case !fresh:
		return resultDuplicate, nil
	}
	handle()
	return resultTaken, nil
}

// stopSession stops the turn of a thread if the person who pressed Slack's stop button may use the bot there.
func (w *workspace) stopSession(e *slackevents.AgentSessionStoppedEvent) {
	ctx, cancel := context.WithTimeout(w.bot.ctx, actTime)
	defer cancel()
	by := w.visitor(ctx, e.User, "")
	if !w.allows(by, e.Channel) { // without their groups
		var err error
		if by, err = w.person(ctx, e.User, ""); err != nil || !w.allows(by, e.Channel) {
			w.logger.Info("a person who may not use the bot pressed stop", "user", e.User, "channel", e.Channel, "home",
				by.home, "err", err)
			w.whisper(ctx, spot{channel: e.Channel, thread: e.ThreadTimestamp}, e.User, w.refusal(by))
			return
		}
	}
	w.stop(ctx, by, conversation(w.account.Load().team, e.Channel, e.ThreadTimestamp))
}

// stop stops a turn for a person who may use the bot there, if the turn belongs to their tenant.
func (w *workspace) stop(ctx context.Context, by person, key string) {
	team, channel, thread, _ := splitConversation(key)
	running, err := w.bot.journal.running(ctx, team, channel)
	if err != nil {
		w.logger.Error("looking up the running turns failed", "err", err)
		return
	}
	for _, m := range running {
		if m.conversation() == key && w.tenantOf(w.visitor(ctx, m.User, m.Home)) != w.tenantOf(by) {
			w.logger.Info("a person pressed stop for an answer of another tenant", "user", by.id, "channel", channel)
			w.whisper(ctx, spot{channel: channel, thread: thread}, by.id, wordsFor(by.locale).forbidden)
			return
		}
	}
	w.bot.stop(key, by.id)
}

// mention returns the message of a mention of the bot, or nil if it is not to be answered.
func (w *workspace) mention(e *slackevents.AppMentionEvent) *message {
	if e.BotID != "" || e.User == "" || e.User == w.account.Load().user || e.Edited != nil || isDM(e.Channel) {
		return nil
	}
	home := w.homeFromEvent(e.UserTeam, e.SourceTeam)
	return w.message(e.Channel, e.ThreadTimeStamp, e.TimeStamp, e.User, home, e.Text, e.Files)
}

// direct returns a direct message to the bot, or nil if it is not to be answered.
func (w *workspace) direct(e *slackevents.MessageEvent) *message {
	shares := e.SubType == "file_share"
	if e.BotID != "" || e.User == "" || e.User == w.account.Load().user || !e.IsIM() || e.SubType != "" && !shares {
		return nil
	}
	var files []slack.File
	if e.Message != nil {
		if e.Message.Edited != nil {
			return nil
		}
		files = e.Message.Files
	}
	home := w.homeFromEvent(e.UserTeam, e.SourceTeam)
	return w.message(e.Channel, e.ThreadTimeStamp, e.TimeStamp, e.User, home, e.Text, files)
}

func (w *workspace) message(channel, thread, ts, user, home, text string, files []slack.File) *message {
	a := w.account.Load()
	if thread == "" {
		thread = ts
	}
	m := &message{
		Workspace: w.Name, Team: a.team, Channel: channel, Thread: thread, TS: ts, User: user, Home: home,
		Text: unescape(strings.TrimSpace(strings.ReplaceAll(text, "<@"+a.user+">", ""))),
	}
	for _, f := range files {
		m.Files = append(m.Files, attachment{f.Name, f.Mimetype, f.Size, f.URLPrivateDownload})
	}
	if strings.Contains(channel+thread, ":") || m.Text == "" && len(m.Files) == 0 {
		return nil
	}
	return m
}
