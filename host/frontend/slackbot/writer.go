package slackbot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Bounds of one message.
const (
	// streamTime ends a streamed message before Slack does, after about 5 minutes.
	streamTime = 4 * time.Minute
	// streamRoom and plainRoom bound the text of one message, in characters: Slack takes 12,000 of Markdown, and 4,000
	// in an update, which escaping lengthens.
	streamRoom = 11_500
	plainRoom  = 2_500
	// endTries bounds the attempts to end an answer, endPause is their interval.
	endTries = 3
	endPause = time.Second
)

// answerWriter writes an answer into a thread: as a streamed message, or, if Slack refuses that, as an updated one. A
// long answer continues in another message. It is used by one goroutine at a time.
type answerWriter struct {
	surface *surface
	// ts is the current message, or empty. plain reports whether messages are updated instead of streamed.
	ts    string
	plain bool
	// opened is the time at which the message began, last that of the last request.
	opened, last time.Time
	// size is the text in the message, in characters. fenced reports whether it ends within a code block.
	size   int
	fenced bool
	// held is the end of the text, which may become a mention, a link or code with the next text.
	held string
	// code is the state of the text before held.
	code code
	// final reports whether no parts follow, shows that something was shown.
	final, shows bool
	// shown are the parts of a plain message, cards those of any message, as last sent.
	shown []part
	cards []card
	// below reports whether a question was asked below the message, so new parts go below the question.
	below bool
	// noted is the journal's state of the message, notedTS its timestamp.
	noted, notedTS string
	// said reports whether the answer is complete and only the end of the message may be missing.
	said bool
}

func (o *answerWriter) api() *slack.Client { return o.surface.w.account.Load().api }

// next returns the earliest time of the next call that Slack allows.
func (o *answerWriter) next() time.Time {
	if o.plain {
		return o.last.Add(updatePause)
	}
	return o.last.Add(streamPause)
}

// write sends parts, or returns them to the surface and fails. The error matches errTakenOver if another process ends
// the answer.
func (o *answerWriter) write(ctx context.Context, parts []part) error {
	defer func() { o.last = time.Now() }()
	if o.ts != "" && !o.plain && time.Since(o.opened) >= o.surface.w.bot.streamTime {
		o.roll(ctx)
	}
	parts = o.settle(parts)
	for len(parts) > 0 {
		if sent := parts[0].question; sent != nil {
			sent()
			o.below, parts = o.ts != "", parts[1:]
			continue
		}
		now, rest := o.fit(parts)
		if err := o.put(ctx, now); err != nil {
			o.surface.w.logger.Warn("sending a part of an answer failed: retrying", "err", err)
			o.surface.back(parts)
			return err
		}
		if parts = rest; len(rest) > 0 && rest[0].question == nil {
			o.roll(ctx)
		}
	}
	return nil
}

// Beginnings, at the end of a text, of what sanitize changes.
var (
	// openAngle is that of a mention, or of Slack's own link.
	openAngle = lazyregexp.New(`<(?:[a-zA-Z][a-zA-Z0-9+.-]*(?::[^<>|\n]*)?)?$`)
	// unfinished is that of the text of a link, or of what crowded matches.
	unfinished = lazyregexp.New(`(\bhttps?://[^\s<>|、。，．！？）」』】〉》］｝]*|\bhttps?(?::/?)?|\bh(?:tt?)?|\[[^\[\]\s]{0,300}\]?|\])$`)
)

// longestAddress bounds the address of a link, in bytes. A longer one makes no link.
const longestAddress = 2000

// linkBreaker breaks what may become a link with a text, or a mention. breaker breaks addresses, too.
var (
	linkBreaker = strings.NewReplacer("](", "] (", "]:", "] :", "<", "&lt;")
	breaker     = strings.NewReplacer("](", "] (", "]:", "] :", "<", "&lt;", "://", ":// ")
)

// undecided splits text before a possible mention, or a link whose host is not known yet.
func undecided(text string) (decided, rest string) {
	at, ended := len(text), 0 // ended is where the last whole address of a link ends
	for from := 0; ; {
		i := strings.Index(text[from:], "](")
		if i < 0 {
			break
		}
		address, whole := destination(text[from+i+2:])
		if !whole {
			at = from + i
			break
		}
		from += i + 2
		ended = from + strings.Index(text[from:], address) + len(address)
	}
	if i := strings.LastIndex(text[:at], "]:"); i >= 0 &&
		!strings.ContainsFunc(strings.TrimLeftFunc(text[i+2:], unicode.IsSpace), unicode.IsSpace) {
		at = i
	}
	if i := unfinished().FindStringIndex(text[min(ended, at):at]); i != nil {
		at = min(ended, at) + i[0]
	}
	if i := openAngle().FindStringIndex(text[:at]); i != nil {
		at = i[0]
	}
	if len(text)-at > longestAddress {
		decided, rest = undecided(breaker.Replace(text[at:]))
		return text[:at] + decided, rest
	}
	return text[:at], text[at:]
}

// settle sanitizes the text and holds its end back while that may become a mention. What is held back before a card or
// a note is shown before it, and cannot become one any more.
func (o *answerWriter) settle(parts []part) []part {
	var settled []part
	for _, p := range parts {
		if p.isText() && !p.sanitized {
			p.text, o.held = o.held+p.text, ""
			if !o.final {
				p.text, o.held = undecided(p.text)
				decided, rest := o.code.undecided(p.text)
				p.text, o.held = decided, rest+o.held
			}
			if p.text = o.code.render(p.text, sanitizeCode, sanitize); p.text == "" {
				continue
			}
			p.sanitized = true // it may be put back and come again
		} else if !p.isText() {
			if text := o.code.render(linkBreaker.Replace(o.held), sanitizeCode, sanitize); text != "" {
				settled = append(settled, part{text: text, sanitized: true})
			}
			o.held = ""
			o.code.interrupt()
		}
		settled = append(settled, p)
	}
	return settled
}

// fit splits parts where the message is full.
func (o *answerWriter) fit(parts []part) (now, rest []part) {
	room := streamRoom - o.size
	if o.plain {
		room = plainRoom - o.size
	}
	for i, p := range parts {
		if p.question != nil || o.below && (p.card == nil || !o.has(p.card.id)) {
			return now, parts[i:]
		}
		n := utf8.RuneCountInString(p.text)
		if n <= room {
			room -= n
			now = append(now, p)
			continue
		}
		head, tail := cut(p.text, room)
		if head != "" {
			now = append(now, part{text: head, note: p.note, sanitized: p.sanitized})
		}
		return now, append([]part{{text: tail, note: p.note, sanitized: p.sanitized}}, parts[i+1:]...)
	}
	return now, nil
}

// cut splits text after at most room characters: at the end of a line or word in the second half, if there is one.
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
			at = i + len(end)
			break
		}
	}
	// Not within a span of code, whose beginning alone is none.
	line := strings.LastIndex(text[:at], "\n") + 1
	if i := strings.LastIndex(text[line:at], "`"); strings.Count(text[line:at], "`")%2 == 1 && at-line-i <= maxSpan+1 {
		at = line + i
	}
	return text[:at], text[at:]
}

// put sends parts that fit. A stream that was closed is followed by another message.
func (o *answerWriter) put(ctx context.Context, parts []part) error {
	if len(parts) == 0 {
		return nil
	}
	if o.ts == "" && o.shows {
		parts = o.carry(parts)
	}
	var err error
	if o.ts != "" && !o.plain {
		_, _, err = o.api().AppendStreamContext(ctx, o.surface.m.Channel, o.ts, slack.MsgOptionChunks(chunks(parts)...))
		if slackError(err) != "" {
			o.surface.w.logger.Info("a streamed message has ended: the answer continues in another", "err", err)
			o.surface.w.bot.options.Observer.SlackRollover()
			o.leave()
			parts, err = o.carry(parts), nil
		} else if err == nil {
			o.sent(ctx, parts)
			return nil
		}
	}
	if err == nil && o.ts == "" && o.shows { // another process may have ended the message
		err = o.surface.w.bot.journal.owns(ctx, o.surface.m)
	}
	if err == nil && o.ts == "" && !o.plain {
		if err = o.open(ctx, parts); slackError(err) != "" {
			o.surface.w.logger.Info("Slack refuses streaming: the answer is an ordinary message", "err", err)
			o.plain, err = true, nil
		} else if err == nil {
			o.sent(ctx, parts)
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
		slack.MsgOptionTS(m.Thread), slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModeTimeline),
		slack.MsgOptionChunks(chunks(parts)...),
	}
	if !isDM(m.Channel) {
		options = append(options, slack.MsgOptionRecipientUserID(m.User),
			slack.MsgOptionRecipientTeamID(cmp.Or(o.surface.who.home, m.Team)))
	}
	_, ts, err := o.api().StartStreamContext(ctx, m.Channel, options...)
	if err != nil {
		return err
	}
	o.begin(ts)
	return nil
}

// begin takes a message that was made.
func (o *answerWriter) begin(ts string) { o.ts, o.opened, o.shows = ts, time.Now(), true }

// sent notes what the message holds by now.
func (o *answerWriter) sent(ctx context.Context, parts []part) {
	for _, p := range parts {
		if p.card != nil {
			o.cards = append(slices.DeleteFunc(o.cards, func(c card) bool { return c.id == p.card.id }), *p.card)
		}
		o.size += utf8.RuneCountInString(p.text)
		for line := range strings.Lines(p.text) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				o.fenced = !o.fenced
			}
		}
	}
	o.note(ctx)
}

// note stores the position of the answer and its open cards, so that another process can end it.
func (o *answerWriter) note(ctx context.Context) {
	encoded, _ := json.Marshal(openCards(o.cards)) // it has only strings
	if o.noted == o.ts+string(encoded) {
		return
	}
	if err := o.surface.w.bot.journal.answering(context.WithoutCancel(ctx), o.surface.m, o.ts,
		string(encoded)); err != nil {
		o.surface.w.logger.Error("storing the state of an answer failed", "err", err)
		return
	}
	o.noted, o.notedTS = o.ts+string(encoded), o.ts
}

// known reports whether the journal knows the message.
func (o *answerWriter) known() bool { return o.notedTS == o.ts }

// openCards returns the open cards.
func openCards(cards []card) []openCard {
	var open []openCard
	for _, c := range cards {
		if c.open() {
			open = append(open, openCard{c.id, c.title})
		}
	}
	return open
}

// has reports whether the message shows a card.
func (o *answerWriter) has(id string) bool {
	return slices.ContainsFunc(o.cards, func(c card) bool { return c.id == id })
}

// carry prepends the open cards to the parts of the next message.
func (o *answerWriter) carry(parts []part) []part {
	var carried []part
	for _, c := range o.surface.open() {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.card != nil && p.card.id == c.id }) {
			carried = append(carried, part{card: &c})
		}
	}
	return append(carried, parts...)
}

// chunks converts parts for a stream.
func chunks(parts []part) []slack.StreamChunk {
	var list []slack.StreamChunk
	for _, p := range parts {
		if p.card == nil {
			list = append(list, slack.NewMarkdownTextChunk(p.text))
			continue
		}
		task := slack.NewTaskUpdateChunk(p.card.id, clip.Marked(sanitize(p.card.title), maxCard))
		task.Status, task.Output = p.card.status, clip.Marked(sanitize(p.card.output), maxCard)
		list = append(list, task)
	}
	return list
}

// roll ends the message, so that the answer continues in another one.
func (o *answerWriter) roll(ctx context.Context) {
	o.surface.w.bot.options.Observer.SlackRollover()
	var last []part
	for _, c := range o.cards {
		if c.open() { // nothing would close it here
			c.status, c.output = slack.TaskCardStatusComplete, o.surface.words.below
			last = append(last, part{card: &c})
		}
	}
	if o.ts != "" && !o.plain {
		if o.fenced {
			last = append(last, part{text: "\n```"})
		}
		var options []slack.MsgOption
		if len(last) > 0 {
			options = append(options, slack.MsgOptionChunks(chunks(last)...))
		}
		o.stop(ctx, options)
	} else if o.ts != "" {
		for _, p := range last {
			o.shown = place(o.shown, p)
		}
		if err := o.render(ctx, nil); err != nil {
			o.surface.w.logger.Info("ending a message failed", "err", err)
		}
	}
	o.leave()
}

// stop ends a streamed message, and leaves the session as it stands: Slack would make it active. The library has no
// option for that.
func (o *answerWriter) stop(ctx context.Context, options []slack.MsgOption) {
	s := o.surface
	s.statusMu.Lock()
	defer s.statusMu.Unlock()
	s.sentStatus = cmp.Or(s.status(), slack.AgentSessionStatusProcessing) // until the last message ends
	api := cmp.Or(s.w.APIURL, slack.APIURL)
	options = append(options, slack.UnsafeMsgOptionEndpoint(api+"chat.stopStream",
		func(v url.Values) { v.Set("session_status", s.sentStatus) }))
	if _, _, err := o.api().StopStreamContext(ctx, s.m.Channel, o.ts, options...); err != nil {
		s.w.logger.Info("a streamed message could not be ended", "err", err)
	}
}

// leave forgets the message.
func (o *answerWriter) leave() {
	o.ts, o.size, o.shown, o.cards = "", 0, nil, nil
	o.below = false
}

// errNothing is for an answer of which nothing was shown.
var errNothing = errors.New("no part of the answer was shown")

// end writes the last parts and closes the message, with buttons for feedback on an answer that is whole. It fails if
// Slack or the journal has not taken that.
func (o *answerWriter) end(ctx context.Context, parts []part, whole bool) error {
	if o.final = true; o.held != "" {
		parts = append([]part{{}}, parts...) // it receives the text that was held back
	}
	for try := 0; ; try++ {
		err := o.write(ctx, parts)
		if err == nil {
			break
		}
		if try == endTries || errors.Is(err, errTakenOver) {
			return err
		}
		select {
		case <-time.After(endPause):
		case <-ctx.Done():
			return err
		}
		parts = o.surface.takePending()
	}
	if o.ts == "" {
		o.surface.w.setStatus(ctx, o.surface.m, slack.AgentSessionStatusActive)
		if !o.shows {
			return errNothing
		}
		return nil
	}
	if err := o.ending(ctx); err != nil {
		return err
	}
	return o.close(ctx, whole)
}

// ending makes sure that the turn is this process's, and records that the answer is complete, before people see that it
// has ended: of two processes that end it one is then too late. It waits for the store, which may be away, until ctx
// ends.
func (o *answerWriter) ending(ctx context.Context) error {
	j, m := o.surface.w.bot.journal, o.surface.m
	for {
		var err error
		if o.surface.left > 0 { // a file follows
			err = j.owns(ctx, m)
		} else if err = j.ending(ctx, m, o.ts); err == nil {
			o.said, o.notedTS = true, o.ts
		}
		if err == nil || errors.Is(err, errTakenOver) || errors.Is(err, errClosed) {
			return err
		}
		o.surface.w.logger.Error("storing the end of an answer failed: retrying", "err", err)
		select {
		case <-time.After(endPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (o *answerWriter) close(ctx context.Context, whole bool) error {
	var feedback slack.Block
	if whole && o.surface.answer != 0 && o.surface.w.bot.options.Rate != nil {
		feedback = o.surface.feedback()
	}
	if o.plain {
		err := o.render(ctx, feedback)
		o.surface.w.setStatus(ctx, o.surface.m, slack.AgentSessionStatusActive)
		return err
	}
	var options []slack.MsgOption
	if feedback != nil {
		options = append(options, slack.MsgOptionBlocks(feedback))
	}
	_, _, err := o.api().StopStreamContext(ctx, o.surface.m.Channel, o.ts, options...)
	if err != nil {
		o.surface.w.logger.Warn("a streamed message could not be ended", "err", err)
	}
	if hasEnded(err) {
		return nil
	}
	return err
}
