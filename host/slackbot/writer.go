package slackbot

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// Bounds of one message.
const (
	// streamTime ends a streamed message before Slack does, after about 5 minutes.
	streamTime = 4 * time.Minute
	// streamRoom and plainRoom are the most text of one message, in characters: Slack takes 12,000 of Markdown, and 4,000 in an update,
	// which escaping lengthens.
	streamRoom = 11_500
	plainRoom  = 2_500
	// endTries is how often the end of an answer is tried again, endPause how long it waits in between.
	endTries = 3
	endPause = time.Second
)

// answerWriter writes an answer into a thread: as a streamed message, and where Slack refuses that, as one that is updated. An answer that
// is too long for one message goes on in another. One goroutine uses it at a time.
type answerWriter struct {
	surface *surface
	// ts is the message that is being written; empty for none. plain says that messages are updated, not streamed.
	ts    string
	plain bool
	// opened is when the message began, last when something was sent.
	opened, last time.Time
	// size is the text in the message, in characters; fenced says that it ends within a block of code.
	size   int
	fenced bool
	// held is the end of the text that may become a mention with what comes next.
	held string
	// final says that nothing more comes, shows that something was shown.
	final, shows bool
	// shown is what a plain message holds.
	shown []part
}

func (o *answerWriter) api() *slack.Client { return o.surface.w.account.Load().api }

// next is when Slack wants the next call at the earliest.
func (o *answerWriter) next() time.Time {
	if o.plain {
		return o.last.Add(updatePause)
	}
	return o.last.Add(streamPause)
}

// write sends parts, or puts them back.
func (o *answerWriter) write(ctx context.Context, parts []part) (ok bool) {
	defer func() { o.last = time.Now() }()
	if o.ts != "" && !o.plain && time.Since(o.opened) >= o.surface.w.bot.streamTime {
		o.roll(ctx)
	}
	parts = o.settle(parts)
	for len(parts) > 0 {
		now, rest := o.fit(parts)
		if err := o.put(ctx, now); err != nil {
			o.surface.w.logger.Warn("a part of an answer could not be sent: it is tried again", "err", err)
			o.surface.back(parts)
			return false
		}
		if parts = rest; len(rest) > 0 {
			o.roll(ctx)
		}
	}
	return true
}

// unfinished is the beginning of what could become a mention.
var unfinished = regexp.MustCompile(`<[a-zA-Z!@#]?[^<>\s|]{0,200}$`)

// settle calms the text, and holds its end back while it may become a mention.
func (o *answerWriter) settle(parts []part) []part {
	var settled []part
	for _, p := range parts {
		if p.card == nil && !p.note && !p.calm {
			p.text, o.held = o.held+p.text, ""
			if at := unfinished.FindStringIndex(p.text); at != nil && !o.final {
				p.text, o.held = p.text[:at[0]], p.text[at[0]:]
			}
			if p.text = calm(p.text); p.text == "" {
				continue
			}
			p.calm = true // it may be put back and come again
		}
		settled = append(settled, p)
	}
	return settled
}

// fit cuts parts where the message is full.
func (o *answerWriter) fit(parts []part) (now, rest []part) {
	room := streamRoom - o.size
	if o.plain {
		room = plainRoom - o.size
	}
	for i, p := range parts {
		n := utf8.RuneCountInString(p.text)
		if n <= room {
			room -= n
			now = append(now, p)
			continue
		}
		head, tail := cut(p.text, room)
		if head != "" {
			now = append(now, part{text: head, note: p.note, calm: p.calm})
		}
		return now, append([]part{{text: tail, note: p.note, calm: p.calm}}, parts[i+1:]...)
	}
	return now, nil
}

// cut cuts text after at most room characters: at the end of a line or word in the second half, if there is one.
func cut(text string, room int) (head, tail string) {
	if room <= 0 {
		return "", text
	}
	if utf8.RuneCountInString(text) <= room {
		return text, ""
	}
	at := len(text)
	for i := range text {
		if room == 0 {
			at = i
			break
		}
		room--
	}
	for _, end := range []string{"\n\n", "\n", "。", " "} {
		if i := strings.LastIndex(text[:at], end); i >= at/2 {
			return text[:i+len(end)], text[i+len(end):]
		}
	}
	return text[:at], text[at:]
}

// put sends parts that fit. A stream that is not one any more is followed by another.
func (o *answerWriter) put(ctx context.Context, parts []part) error {
	if len(parts) == 0 {
		return nil
	}
	var err error
	if o.ts != "" && !o.plain {
		_, _, err = o.api().AppendStreamContext(ctx, o.surface.m.Channel, o.ts, slack.MsgOptionChunks(chunks(parts)...))
		if slackError(err) != "" {
			o.surface.w.logger.Info("a streamed message has ended: the answer goes on in another", "err", err)
			o.surface.w.bot.options.Observer.SlackRollover()
			o.leave()
			err = nil
		} else if err == nil {
			o.count(parts)
			return nil
		}
	}
	if err == nil && o.ts == "" && !o.plain {
		if err = o.open(ctx, parts); slackError(err) != "" {
			o.surface.w.logger.Info("streaming is refused: the answer is an ordinary message", "err", err)
			o.plain, err = true, nil
		} else if err == nil {
			o.count(parts)
			return nil
		}
	}
	if err == nil {
		err = o.update(ctx, parts)
	}
	return err
}

// open begins a streamed message.
func (o *answerWriter) open(ctx context.Context, parts []part) error {
	m := o.surface.m
	if o.fenced {
		parts = append([]part{{text: "```\n"}}, parts...)
	}
	options := []slack.MsgOption{
		slack.MsgOptionTS(m.Thread), slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModeTimeline), slack.MsgOptionChunks(chunks(parts)...),
	}
	if !isDM(m.Channel) {
		options = append(options, slack.MsgOptionRecipientUserID(m.User), slack.MsgOptionRecipientTeamID(m.Team))
	}
	_, ts, err := o.api().StartStreamContext(ctx, m.Channel, options...)
	if err != nil {
		return err
	}
	o.begin(ctx, ts)
	return nil
}

// begin notes a message that was made.
func (o *answerWriter) begin(ctx context.Context, ts string) {
	o.ts, o.opened, o.shows = ts, time.Now(), true
	if err := o.surface.w.bot.journal.answering(context.WithoutCancel(ctx), o.surface.m, ts); err != nil {
		o.surface.w.logger.Error("an answer could not be written down", "err", err)
	}
}

// count counts the text that was sent.
func (o *answerWriter) count(parts []part) {
	for _, p := range parts {
		o.size += utf8.RuneCountInString(p.text)
		for line := range strings.Lines(p.text) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				o.fenced = !o.fenced
			}
		}
	}
}

// chunks are parts as a stream takes them.
func chunks(parts []part) []slack.StreamChunk {
	var list []slack.StreamChunk
	for _, p := range parts {
		if p.card == nil {
			list = append(list, slack.NewMarkdownTextChunk(p.text))
			continue
		}
		task := slack.NewTaskUpdateChunk(p.card.id, p.card.title)
		task.Status, task.Output = p.card.status, p.card.output
		list = append(list, task)
	}
	return list
}

// roll ends the message, so that the answer goes on in another.
func (o *answerWriter) roll(ctx context.Context) {
	o.surface.w.bot.options.Observer.SlackRollover()
	if o.ts != "" && !o.plain {
		var options []slack.MsgOption
		if o.fenced {
			options = append(options, slack.MsgOptionMarkdownText("\n```"))
		}
		if _, _, err := o.api().StopStreamContext(ctx, o.surface.m.Channel, o.ts, options...); err != nil {
			o.surface.w.logger.Info("a streamed message could not be ended", "err", err)
		}
		o.surface.w.setStatus(ctx, o.surface.m, slack.AgentSessionStatusProcessing) // ending the message made it active
	} else if o.ts != "" {
		o.render(ctx, nil)
	}
	o.leave()
}

// leave forgets the message.
func (o *answerWriter) leave() { o.ts, o.size, o.shown = "", 0, nil }

// update writes parts into an ordinary message, which it makes if there is none.
func (o *answerWriter) update(ctx context.Context, parts []part) error {
	before := o.shown
	if len(before) == 0 && o.fenced {
		o.shown = []part{{text: "```\n", calm: true}}
	}
	for _, p := range parts {
		o.shown = place(o.shown, p)
	}
	err := o.render(ctx, o.surface.stopButton())
	if err != nil {
		o.shown = before
		return err
	}
	o.count(parts)
	return nil
}

// place adds a part, or puts a card in the place of its earlier state. Text goes on where it ended, for marks may span parts.
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
		attachments = append(attachments, slack.Attachment{Fallback: " ", Blocks: slack.Blocks{BlockSet: []slack.Block{buttons}}})
	}
	options := []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionAttachments(attachments...), slack.MsgOptionDisableLinkUnfurl()}
	if o.ts != "" {
		_, _, _, err := o.api().UpdateMessageContext(ctx, o.surface.m.Channel, o.ts, options...)
		return err
	}
	_, ts, err := o.api().PostMessageContext(ctx, o.surface.m.Channel, append(options, slack.MsgOptionTS(o.surface.m.Thread))...)
	if err == nil {
		o.begin(ctx, ts)
	}
	return err
}

// marks are what cards look like in an ordinary message.
var marks = map[slack.TaskCardStatus]string{
	slack.TaskCardStatusPending: ":raised_hand:", slack.TaskCardStatusInProgress: ":hourglass_flowing_sand:",
	slack.TaskCardStatusComplete: ":white_check_mark:", slack.TaskCardStatusError: ":x:",
}

// plainText is what was written as Slack's own markup. Notes of the bot's keep their mentions.
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

// end writes the last parts and closes the message, with buttons for feedback on an answer that is whole. It reports whether Slack has
// taken that.
func (o *answerWriter) end(ctx context.Context, parts []part, whole bool) bool {
	if o.final = true; o.held != "" {
		parts = append([]part{{}}, parts...) // which takes what was held back
	}
	for try := 0; !o.write(ctx, parts); try++ {
		if try == endTries {
			return false
		}
		select {
		case <-time.After(endPause):
		case <-ctx.Done():
			return false
		}
		parts = o.surface.take()
	}
	if o.ts == "" {
		o.surface.w.setStatus(ctx, o.surface.m, slack.AgentSessionStatusActive)
		return o.shows
	}
	return o.close(ctx, whole)
}

func (o *answerWriter) close(ctx context.Context, whole bool) bool {
	var feedback slack.Block
	if whole {
		feedback = o.surface.feedback()
	}
	if o.plain {
		err := o.render(ctx, feedback)
		o.surface.w.setStatus(ctx, o.surface.m, slack.AgentSessionStatusActive)
		return err == nil
	}
	var options []slack.MsgOption
	if feedback != nil {
		options = append(options, slack.MsgOptionBlocks(feedback))
	}
	_, _, err := o.api().StopStreamContext(ctx, o.surface.m.Channel, o.ts, options...)
	if err != nil {
		o.surface.w.logger.Warn("a streamed message could not be ended", "err", err)
	}
	return err == nil || slackError(err) != ""
}

// IDs of what can be pressed.
const (
	actionStop     = "hako_stop"
	actionApprove  = "hako_approve"
	actionDeny     = "hako_deny"
	actionFeedback = "hako_feedback"
)

func (s *surface) stopButton() slack.Block {
	return slack.NewActionBlock("", button(actionStop, s.m.conversation(), s.words.stop))
}

func (s *surface) feedback() slack.Block {
	good := slack.NewFeedbackButton(plain(s.words.good), "good")
	bad := slack.NewFeedbackButton(plain(s.words.bad), "bad")
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(actionFeedback, good, bad))
}

func button(action, value, text string) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(action, value, plain(text))
}

func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}
