package slackbot

import (
	"context"
	"slices"
	"strings"

	"github.com/slack-go/slack"
)

// update writes parts into an ordinary message, which it posts if there is none.
func (o *answerWriter) update(ctx context.Context, parts []part) error {
	before := o.shown
	if len(before) == 0 && o.fenced {
		o.shown = []part{{text: "```\n", sanitized: true}}
	}
	for _, p := range parts {
		o.shown = place(o.shown, p)
	}
	err := o.render(ctx, o.surface.stopButton())
	if err != nil {
		o.shown = before
		return err
	}
	o.sent(ctx, parts)
	return nil
}

// place adds a part, or puts a card in the place of its earlier state. Text goes on where it ended, for marks may span
// parts.
func place(shown []part, p part) []part {
	placed := slices.Clone(shown)
	if last := len(placed) - 1; last >= 0 && p.isText() && placed[last].isText() {
		placed[last].text += p.text
		return placed
	}
	for i := range placed {
		if p.card != nil && placed[i].card != nil && placed[i].card.id == p.card.id {
			placed[i] = p
			return placed
		}
	}
	return append(placed, p)
}

// render posts or updates the ordinary message, with buttons below.
func (o *answerWriter) render(ctx context.Context, buttons slack.Block) error {
	text := plainText(o.shown)
	attachments := []slack.Attachment{}
	if buttons != nil {
		attachments = append(attachments,
			slack.Attachment{Fallback: " ", Blocks: slack.Blocks{BlockSet: []slack.Block{buttons}}})
	}
	options := []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionAttachments(attachments...)}
	if o.ts != "" {
		return o.surface.w.rewrite(ctx, o.surface.m.Channel, o.ts, options...)
	}
	_, ts, err := o.surface.w.post(ctx, o.surface.m.Channel, append(options, slack.MsgOptionTS(o.surface.m.Thread))...)
	if err == nil {
		o.begin(ts)
	}
	return err
}

// marks show the states of cards in an ordinary message.
var marks = map[slack.TaskCardStatus]string{
	slack.TaskCardStatusPending: ":raised_hand:", slack.TaskCardStatusInProgress: ":hourglass_flowing_sand:",
	slack.TaskCardStatusComplete: ":white_check_mark:", slack.TaskCardStatusError: ":x:",
}

// plainText returns the parts in Slack's markup. Notes of the bot keep their mentions.
func plainText(shown []part) string {
	var b strings.Builder
	for _, p := range shown {
		switch {
		case p.card != nil:
			line := marks[p.card.status] + " " + p.card.title
			if p.card.output != "" {
				line += ": " + p.card.output
			}
			b.WriteString(escape(line) + "\n")
		case p.note:
			b.WriteString(p.text)
		default:
			b.WriteString(mrkdwn(unescape(p.text)))
		}
	}
	if text := strings.TrimSpace(b.String()); text != "" {
		return text
	}
	return "…"
}
