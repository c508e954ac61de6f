package slackbot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// actTime is for what follows a click or a command.
const (
	actTime     = 30 * time.Second
	commandTime = 2500 * time.Millisecond // Slack waits 3 seconds
)

// interaction handles a click. It returns at once: Slack waits for an acknowledgement.
func (w *workspace) interaction(callback *slack.InteractionCallback) {
	observer := w.bot.options.Observer
	if callback.Type != slack.InteractionTypeBlockActions {
		observer.SlackEvent(kindAction, resultIgnored)
		return
	}
	if w = w.of(callback.Team.ID); w == nil {
		observer.SlackEvent(kindAction, resultForbidden)
		return
	}
	observer.SlackEvent(kindAction, resultTaken)
	for _, action := range callback.ActionCallback.BlockActions {
		w.bot.work.Go(func() { w.act(callback, action) })
	}
}

// act does what a button stands for.
func (w *workspace) act(callback *slack.InteractionCallback, action *slack.BlockAction) {
	ctx, cancel := context.WithTimeout(w.bot.ctx, actTime)
	defer cancel()
	channel := callback.Container.ChannelID
	if channel == "" {
		channel = callback.Channel.ID
	}
	by, err := w.person(ctx, callback.User.ID)
	if err != nil {
		w.logger.Error("somebody's groups are not known", "user", callback.User.ID, "err", err)
		return
	}
	switch action.ActionID {
	case actionApprove, actionDeny:
		w.bot.decide(ctx, w, by, channel, action.Value, action.ActionID == actionApprove)
	case actionStop:
		team, in, _, ok := splitConversation(action.Value)
		if ok && team == w.account.Load().team && in == channel && w.allows(by, channel) {
			w.bot.stop(action.Value, by.id)
		}
	case actionFeedback:
		w.logger.Info("feedback", "user", by.id, "channel", channel, "thread", callback.Container.ThreadTs, "value", clip(action.Value, 10))
		w.whisper(ctx, channel, by.id, wordsFor(by.locale).thanks)
	}
}

// command answers a slash command, to whoever typed it alone.
func (w *workspace) command(ctx context.Context, c *slack.SlashCommand) any {
	observer := w.bot.options.Observer
	if w = w.of(c.TeamID); w == nil {
		observer.SlackEvent(kindCommand, resultForbidden)
		return nil
	}
	observer.SlackEvent(kindCommand, resultTaken)
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return map[string]string{"response_type": "ephemeral", "text": w.reply(ctx, c)}
}

// reply is the answer to a slash command.
func (w *workspace) reply(ctx context.Context, c *slack.SlashCommand) string {
	by, err := w.person(ctx, c.UserID)
	words := wordsFor(by.locale)
	switch {
	case err != nil:
		w.logger.Error("somebody's groups are not known", "user", c.UserID, "err", err)
		return words.failed
	case !w.allows(by, c.ChannelID):
		return words.forbidden
	}
	switch strings.ToLower(strings.TrimSpace(c.Text)) {
	case "tools":
		return w.listTools(by, words)
	case "status":
		if n := len(w.bot.inChannel(c.TeamID, c.ChannelID)); n > 0 {
			return fmt.Sprintf(words.running, n)
		}
		return words.idle
	case "stop":
		return w.stopAll(c, words)
	case "usage":
		return w.usage(ctx, by, words)
	}
	name := escape(c.Command)
	return fmt.Sprintf(words.help, name, name, name, name)
}

// listTools lists what the person may use, as far as a message holds it.
func (w *workspace) listTools(by person, words *words) string {
	lines := []string{words.tools}
	if w.bot.options.Tools != nil {
		for _, tool := range w.bot.options.Tools(w.caller(by, "")) {
			line := "• `" + escape(tool.Name) + "`"
			if title := tool.Spec.Title.In(by.locale); title != "" {
				line += " " + escape(oneLine(title))
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 {
		return words.noTools
	}
	return clip(strings.Join(lines, "\n"), maxQuestion)
}

// stopAll stops what the person has asked for in the channel.
func (w *workspace) stopAll(c *slack.SlashCommand, words *words) string {
	n := 0
	for _, t := range w.bot.inChannel(c.TeamID, c.ChannelID) {
		if t.message.User == c.UserID {
			t.cancel(&stoppedError{c.UserID})
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
	text, err := w.bot.options.Usage(ctx, w.caller(by, ""))
	if err != nil {
		w.logger.Error("the usage is not known", "err", err)
		return words.failed
	}
	return escape(text)
}
