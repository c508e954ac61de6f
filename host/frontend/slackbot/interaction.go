package slackbot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
)

// actTime bounds the work after a click.
const actTime = 30 * time.Second

// commandTime bounds the work after a command. Slack waits 3 seconds.
var commandTime = 2500 * time.Millisecond

// interaction handles a click or a submitted modal. It returns at once, because Slack waits for the acknowledgement,
// and returns its payload; nil means none.
func (w *workspace) interaction(ctx context.Context, callback *slack.InteractionCallback) any {
	observer := w.bot.options.Observer
	submitted := callback.Type == slack.InteractionTypeViewSubmission && callback.View.CallbackID == callbackForm
	if callback.Type != slack.InteractionTypeBlockActions && !submitted {
		observer.SlackEvent(kindAction, resultIgnored)
		return nil
	}
	// A modal submitted by somebody of another workspace names their team, and the workspace that the app is installed
	// in.
	if w = w.of(cmp.Or(callback.View.AppInstalledTeamID, callback.Team.ID)); w == nil {
		observer.SlackEvent(kindAction, resultForbidden)
		return nil
	}
	observer.SlackEvent(kindAction, resultTaken)
	if submitted {
		ctx, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		return w.submitForm(ctx, callback)
	}
	for _, action := range callback.ActionCallback.BlockActions {
		w.bot.work.Go(func() { w.act(callback, action) })
	}
	return nil
}

// act performs the action of a button.
func (w *workspace) act(callback *slack.InteractionCallback, action *slack.BlockAction) {
	ctx, cancel := context.WithTimeout(w.bot.ctx, actTime)
	defer cancel()
	channel := callback.Container.ChannelID
	if channel == "" {
		channel = callback.Channel.ID
	}
	at := spot{channel: channel, thread: callback.Container.ThreadTs}
	switch action.ActionID {
	case actionForm, actionFormYes,
		actionFormNo: // before anything is looked up: what opens a modal is good for three seconds
		w.pressForm(ctx, callback, action, at)
		return
	}
	by := w.visitor(ctx, callback.User.ID, w.homeFromEvent(callback.User.TeamID))
	if !w.welcomes(by.home) {
		w.logger.Info("a person of another workspace pressed a button", "user", by.id, "home", by.home)
		w.whisper(ctx, at, by.id, w.refusal(by))
		return
	}
	var err error
	if by.groups, err = w.groups(ctx, by.id); err != nil {
		w.logger.Error("looking up the groups of a person failed", "user", callback.User.ID, "err", err)
		return
	}
	switch action.ActionID {
	case actionApprove, actionDeny:
		w.bot.decide(ctx, w, by, at, action.Value, action.ActionID == actionApprove)
	case actionExact:
		w.showExact(ctx, by, at, action.Value, callback.TriggerID)
	case actionStop:
		team, in, _, ok := splitConversation(action.Value)
		if ok && team == w.account.Load().team && in == channel && w.allows(by, channel) {
			w.stop(ctx, by, action.Value)
		}
	case actionFeedback:
		w.rate(ctx, by, at, action.Value)
	}
}

// rating is the value of a feedback button.
func rating(good bool, answer int64) string { return fmt.Sprintf("%t:%d", good, answer) }

// rate stores a person's rating of an answer in a thread.
func (w *workspace) rate(ctx context.Context, by person, at spot, value string) {
	var good bool
	var answer int64
	if _, err := fmt.Sscanf(value, "%t:%d", &good, &answer); err != nil || w.bot.options.Rate == nil ||
		!w.allows(by, at.channel) {
		return
	}
	in := conversation(w.account.Load().team, at.channel, at.thread)
	text := wordsFor(by.locale).thanks
	if err := w.bot.options.Rate(ctx, w.caller(by, at.channel, in), in, answer, good); errors.Is(err, chat.ErrUnknown) {
		text = wordsFor(by.locale).noAnswer
	} else if err != nil {
		w.logger.Error("storing feedback failed", "err", err)
		text = wordsFor(by.locale).failed
	}
	w.whisper(ctx, at, by.id, text)
}

// command answers a slash command. Only its author sees the answer.
func (w *workspace) command(ctx context.Context, c *slack.SlashCommand) any {
	observer := w.bot.options.Observer
	installed := w.of(c.TeamID)
	if installed == nil {
		observer.SlackEvent(kindCommand, resultForbidden)
		if w.account.Load() == nil {
			return nil
		}
		return whispered(w.refusal(person{id: c.UserID, locale: w.bot.options.Locale,
			home: cmp.Or(c.TeamID, unknownHome)}))
	}
	w = installed
	observer.SlackEvent(kindCommand, resultTaken)
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return whispered(w.reply(ctx, c))
}

// whispered is a response to a slash command that only its author sees.
func whispered(text string) any { return map[string]string{"response_type": "ephemeral", "text": text} }

// reply returns the response to a slash command.
func (w *workspace) reply(ctx context.Context, c *slack.SlashCommand) string {
	by, err := w.person(ctx, c.UserID, "")
	words := wordsFor(by.locale)
	switch {
	case err != nil:
		w.logger.Error("looking up the groups of a person failed", "user", c.UserID, "err", err)
		return words.failed
	case !w.allows(by, c.ChannelID):
		return w.refusal(by)
	}
	switch strings.ToLower(strings.TrimSpace(c.Text)) {
	case "tools":
		return w.listTools(by, c.ChannelID, words)
	case "status":
		return w.status(ctx, c, words)
	case "stop":
		return w.stopAll(ctx, c, words)
	case "usage":
		return w.usage(ctx, by, words)
	}
	name := escape(c.Command)
	return fmt.Sprintf(words.help, name, name, name, name)
}

// listTools lists the tools that the person may use, as far as they fit into a message.
func (w *workspace) listTools(by person, channel string, words *words) string {
	var tools []*catalog.Tool
	if w.bot.options.Tools != nil {
		tools = w.bot.options.Tools(w.caller(by, channel, ""))
	}
	if len(tools) == 0 {
		return words.noTools
	}
	text := words.tools
	for i, tool := range tools {
		line := "\n• `" + escape(tool.Name) + "`"
		if title := tool.Spec.Title.In(by.locale); title != "" {
			line += " " + escape(oneLine(title))
		}
		if len(text)+len(line) > maxQuestion {
			return text + "\n" + fmt.Sprintf(words.moreTools, len(tools)-i)
		}
		text += line
	}
	return text
}

// status counts the answers being written in the channel by all processes.
func (w *workspace) status(ctx context.Context, c *slack.SlashCommand, words *words) string {
	running, err := w.bot.journal.running(ctx, c.TeamID, c.ChannelID)
	switch {
	case err != nil:
		w.logger.Error("looking up the running turns failed", "err", err)
		return words.failed
	case len(running) == 0:
		return words.idle
	}
	return fmt.Sprintf(words.running, len(running))
}

// stopAll stops the person's turns in the channel, in all processes.
func (w *workspace) stopAll(ctx context.Context, c *slack.SlashCommand, words *words) string {
	running, err := w.bot.journal.running(ctx, c.TeamID, c.ChannelID)
	if err != nil {
		w.logger.Error("looking up the running turns failed", "err", err)
		return words.failed
	}
	n := 0
	for _, m := range running {
		if m.User == c.UserID {
			w.bot.stop(m.conversation(), c.UserID)
			n++
		}
	}
	if n == 0 {
		return words.nothingToStop
	}
	return fmt.Sprintf(words.stopping, n)
}

func (w *workspace) usage(ctx context.Context, by person, words *words) string {
	if w.bot.options.Usage == nil {
		return words.noUsage
	}
	text, err := w.bot.options.Usage(ctx, w.caller(by, "", ""))
	if err != nil {
		w.logger.Error("looking up the usage failed", "err", err)
		return words.failed
	}
	return escape(text)
}
