package slackbot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/clip"
)

const (
	// lastTime bounds writing the end of an answer, which waits for Slack's rate limits and may upload a file.
	lastTime = 2 * time.Minute
	// endTime bounds it while the process ends, and for answers that broke off.
	endTime = 10 * time.Second
)

// turn is a running turn.
type turn struct {
	message *message
	cancel  context.CancelCauseFunc
	surface *surface
}

// errEnding is the cause of cancellations when the process ends.
var errEnding = errors.New("hako is shutting down")

// answer passes a message to the engine and shows the outcome. It calls free when the turn begins to wait for people,
// so that other turns need not wait for them too.
func (b *Bot) answer(m *message, free func()) {
	w := b.workspaceOf(m)
	if w == nil {
		return // it stays in the journal until the workspace is connected
	}
	ctx, span := b.options.Tracer.Start(b.ctx, "slack message", trace.Consumer, trace.Remote{})
	defer span.End()
	span.Text(trace.Messaging, "slack")
	span.Text(trace.MessagingOperation, "process")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !b.begin(ctx, w, m) {
		return
	}
	who, err := w.person(ctx, m.User, m.Home)
	s := newSurface(w, m, who, free)
	t := &turn{message: m, cancel: cancel, surface: s}
	b.queues.set(m.conversation(), t)
	defer b.queues.clear(m.conversation())
	var answer *chat.Answer
	switch {
	case err != nil:
		w.logger.Error("looking up the groups of a person failed", "user", m.User, "err", err)
	case !w.allows(who, m.Channel):
		w.logger.Info("a person may not use the bot", "user", m.User, "channel", m.Channel, "home", who.home)
		err = errForbidden
	default:
		s.begin(ctx)
		answer, err = b.options.Engine.Turn(ctx, w.turn(ctx, m, who, s))
	}
	cause := context.Cause(ctx)
	if cause != nil && b.ctx.Err() != nil {
		cause = errEnding
	}
	s.halt()
	if err != nil && cause == nil && !errors.Is(err, errForbidden) {
		w.logger.Warn("a turn failed", "conversation", m.conversation(), "err", err)
	}
	ending, stop := b.forLastWords(ctx)
	defer stop()
	end := cause
	if !errors.Is(cause, errTakenOver) {
		if end = s.finish(ending, answer, err, cause); end == nil {
			end = b.journal.ended(ending, m)
		}
	}
	switch {
	case errors.Is(end, errTakenOver):
		w.leave(ending, s)
	case end != nil:
		b.work.Go(func() { w.endLater(s.broken()) })
	}
}

// leave leaves a turn to the process that has taken it over, which ends the message in the journal. A message that is
// not in the journal is ended here.
func (w *workspace) leave(ctx context.Context, s *surface) {
	if s.out.ts == "" || s.out.plain || s.out.known() {
		return
	}
	if err := w.stopBroken(ctx, s.broken(), w.words(ctx, s.m)); err != nil {
		w.logger.Warn("ending an interrupted answer failed", "err", err)
	}
}

// forLastWords returns the context in which an answer ends.
func (b *Bot) forLastWords(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	unbound := context.AfterFunc(b.ctx, func() { time.AfterFunc(endTime, cancel) })
	return ctx, func() { unbound(); cancel() }
}

// begin records that the turn runs, and retries until the store accepts it. It reports false if another process owns
// the turn or the process ends.
func (b *Bot) begin(ctx context.Context, w *workspace, m *message) bool {
	for {
		mine, err := b.journal.started(ctx, m)
		if err == nil {
			return mine
		}
		w.logger.Error("storing a turn failed: retrying", "err", err)
		select {
		case <-time.After(startPause):
		case <-ctx.Done():
			return false
		}
	}
}

// startPause is the interval between attempts to begin a turn.
const startPause = time.Second

// errForbidden is the error for people who may not use the bot.
var errForbidden = errors.New("this person may not use the bot here")

// workspaceOf returns the workspace of a message once it is signed in, or nil.
func (b *Bot) workspaceOf(m *message) *workspace {
	for _, w := range b.workspaces {
		if w.Name == m.Workspace && w.account.Load() != nil {
			return w
		}
	}
	return nil
}

// turn returns the engine's turn for the message, with the earlier messages of the thread and the files.
func (w *workspace) turn(ctx context.Context, m *message, who person, s *surface) *chat.Turn {
	t := &chat.Turn{
		Conversation: m.conversation(), Shared: !isDM(m.Channel), Text: m.Text, Locale: who.locale, Surface: s,
		Caller: w.caller(who, m.Channel, m.conversation()), Name: func(user string) string { return w.name(ctx, user) },
	}
	if earlier := w.earlier(ctx, m); earlier != "" {
		t.Files = append(t.Files, chat.File{Name: "slack-thread.txt", MIMEType: "text/plain",
			Data: []byte(s.words.files + "\n" + earlier)})
	}
	for _, f := range m.Files {
		file, err := w.download(ctx, f)
		if err != nil {
			w.logger.Warn("a file was omitted", "err", err)
			text := fmt.Sprintf(s.words.fileFailed, nameInCode(f.Name))
			if errors.Is(err, errTooLarge) {
				text = fmt.Sprintf(s.words.fileTooLarge, nameInCode(f.Name), maxFile>>20)
			}
			s.Notice(chat.NoticeFile, text)
			continue
		}
		t.Files = append(t.Files, file)
	}
	if err := w.bot.journal.saw(ctx, m.conversation(), m.TS); err != nil {
		w.logger.Error("storing the position in a thread failed", "err", err)
	}
	return t
}

// caller returns the pipeline's caller for a person.
func (w *workspace) caller(p person, channel, session string) pipeline.Caller {
	return pipeline.Caller{Frontend: pipeline.FrontendSlack, Tenant: w.tenantOf(p), User: p.id, Email: p.email,
		Groups: p.groups, Channel: channel, Session: session, Locale: p.locale, Client: "slack"}
}

// endLater retries to end an answer. If the process ends first, the next one does.
func (w *workspace) endLater(t broken) {
	for {
		select {
		case <-time.After(lostPoll):
		case <-w.bot.ctx.Done():
			return
		}
		if w.endLost(w.bot.ctx, t) {
			return
		}
	}
}

// endLost ends an answer that broke off, such as one of a dead process. It reports whether that is done, here or by
// another process.
func (w *workspace) endLost(ctx context.Context, t broken) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	m := t.message
	err := w.bot.journal.owns(ctx, m)
	switch {
	case errors.Is(err, errTakenOver):
		return true
	case err != nil:
		w.logger.Error("ending an interrupted answer failed: retrying", "err", err)
		return false
	}
	w.closeForms(ctx, m)
	words := w.words(ctx, m)
	err = errNoStream
	if t.answer != "" {
		err = w.stopBroken(ctx, t, words)
	}
	switch {
	case err != nil && !t.ending:
		_, _, err = w.post(ctx, m.Channel, slack.MsgOptionTS(m.Thread), slack.MsgOptionText(words.lost, false))
	case hasEnded(err):
		err = nil
	}
	if slices.Contains(goneErrors, slackError(err)) {
		w.logger.Warn("an interrupted answer stays open: the bot can no longer write there", "channel",
			m.Channel, "err", err)
		err = nil
	}
	if err != nil {
		w.logger.Error("ending an interrupted answer failed: retrying", "err", err)
		return false
	}
	w.setStatus(ctx, m, slack.AgentSessionStatusActive)
	err = w.bot.journal.ended(ctx, m)
	if err != nil && !errors.Is(err, errTakenOver) {
		w.logger.Error("removing a turn from the journal failed: retrying", "err", err)
		return false
	}
	return true
}

// hasEnded reports whether Slack refuses to end a message because it is closed or gone.
func hasEnded(err error) bool {
	return slices.Contains([]string{"message_not_in_streaming_state", "message_not_found"}, slackError(err))
}

// goneErrors are Slack's errors for places where messages can no longer be posted.
var goneErrors = []string{"channel_not_found", "not_in_channel", "is_archived", "thread_not_found"}

var errNoStream = errors.New("there is no streamed message")

// stopBroken closes the streamed message of an answer that broke off, and says so in it unless the answer is complete.
func (w *workspace) stopBroken(ctx context.Context, t broken, words *words) error {
	var last []part
	if !t.ending {
		last = append(last, part{text: "\n\n" + words.lost})
	}
	for _, c := range t.cards {
		last = append(last, part{card: &card{id: c.ID, title: c.Title, status: slack.TaskCardStatusError,
			output: oneLine(words.stopped)}})
	}
	var options []slack.MsgOption
	if len(last) > 0 {
		options = append(options, slack.MsgOptionChunks(chunks(last)...))
	}
	_, _, err := w.account.Load().api.StopStreamContext(ctx, t.message.Channel, t.answer, options...)
	return err
}

// words returns the words in the language of the message's author.
func (w *workspace) words(ctx context.Context, m *message) *words {
	return wordsFor(w.locale(ctx, m.User))
}

// setStatus sets the status of the agent session. Apps without the agent view have no session, which does no harm.
func (w *workspace) setStatus(ctx context.Context, m *message, status string) {
	_, err := w.account.Load().api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{
		Status: status, ChannelID: m.Channel, ThreadTS: m.Thread, InitiatorUserID: m.User,
	})
	if err != nil {
		w.logger.Debug("Slack did not accept the session's status", "err", err)
	}
}

// failureText returns the text of an error for people.
func failureText(err error, w *words) string {
	if failure, ok := errors.AsType[*chat.Error](err); ok {
		return failure.Text
	}
	return w.failed
}

// Bounds of what is read of a thread.
const (
	threadPages = 10       // in order, from the oldest message on
	threadSkips = 40       // then, to find the newest: halvings of a year to less than a second
	threadBytes = 24 << 10 // about 8,000 tokens
	maxSaid     = 4 << 10  // in bytes, of one message
)

// earlier returns the messages of others in the thread since the bot last looked. If there are too many, it returns the
// newest.
func (w *workspace) earlier(ctx context.Context, m *message) string {
	if isDM(m.Channel) || m.Thread == m.TS {
		return ""
	}
	seen, err := w.bot.journal.seen(ctx, m.conversation())
	if err != nil {
		w.logger.Error("looking up the position in a thread failed", "err", err)
	}
	var lines []string // newest first
	size := 0
	for _, said := range slices.Backward(w.replies(ctx, m, seen)) {
		line := leftOut
		if said.Timestamp != "" {
			line = fmt.Sprintf("%s: %s", w.author(ctx, &said), indented(clip.Marked(unescape(said.Text), maxSaid)))
		}
		if size += len(line) + 1; size > threadBytes {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// leftOut marks messages of a thread that were not read.
const leftOut = "[...]"

// replies reads the messages of others in the thread between seen and m. Slack returns the oldest messages first and
// not their number. If a thread is too long to be read as a whole, replies also looks for its newest messages: it
// halves the time in which the last page may begin until that page is at least half full. A message without a timestamp
// marks messages that were not read.
func (w *workspace) replies(ctx context.Context, m *message, seen string) []slack.Message {
	a := w.account.Load()
	parameters := &slack.GetConversationRepliesParameters{ChannelID: m.Channel, Timestamp: m.Thread, Limit: 200}
	// page returns the messages between from and m, and the cursor of the next page if there are more.
	page := func(from, cursor string) (list []slack.Message, next string, err error) {
		parameters.Oldest, parameters.Cursor = from, cursor
		list, more, next, err := a.api.GetConversationRepliesContext(ctx, parameters)
		if err != nil {
			w.logger.Warn("reading a thread failed", "channel", m.Channel, "err", err)
			return nil, "", err
		}
		list = slices.DeleteFunc(list, func(said slack.Message) bool { // each page may have the thread's first message
			return said.Timestamp <= from
		})
		end := slices.IndexFunc(list, func(said slack.Message) bool { return said.Timestamp >= m.TS })
		if end >= 0 {
			return list[:end], "", nil
		}
		if !more {
			next = ""
		}
		return list, next, nil
	}
	var found []slack.Message
	after, until := seen, m.TS // the last page begins between these
	full, cursor := 0, ""
	for i := range threadPages {
		list, next, err := page(seen, cursor)
		found = append(found, a.others(list)...)
		switch {
		case err != nil && i == 0, err == nil && next == "":
			return found
		case err != nil:
			return append(found, slack.Message{})
		case len(list) > 0:
			after = list[len(list)-1].Timestamp
		}
		full, cursor = max(full, len(list)), next
	}
	var newest []slack.Message
	for i := 0; i < threadSkips && len(newest) <= full/2; i++ {
		at := halfway(after, until)
		if at <= after || at >= until {
			break
		}
		list, next, err := page(at, "")
		if err != nil {
			break
		}
		if next != "" {
			after = at
			continue
		}
		until, newest = at, list
	}
	return slices.Concat(found, []slack.Message{{}}, a.others(newest))
}

// others returns the messages that are neither by the bot nor for it.
func (a *account) others(list []slack.Message) []slack.Message {
	return slices.DeleteFunc(slices.Clone(list), func(said slack.Message) bool {
		return said.User == a.user || said.BotID == a.bot || strings.Contains(said.Text, "<@"+a.user+">")
	})
}

// halfway returns the time in the middle between two of Slack's timestamps, or from if they are invalid.
func halfway(from, to string) string {
	a, err := strconv.ParseFloat(from, 64)
	b, err2 := strconv.ParseFloat(to, 64)
	if err != nil || err2 != nil {
		return from
	}
	return strconv.FormatFloat(a+(b-a)/2, 'f', 6, 64)
}

// indented indents the lines of a message after its first one, so that they cannot be mistaken for other messages.
func indented(text string) string {
	return strings.NewReplacer("\r\n", "\n    ", "\n", "\n    ", "\r", "\n    ", "\v", "\n    ", "\f", "\n    ",
		"\u0085", "\n    ",
		"\u2028", "\n    ", "\u2029", "\n    ").Replace(text)
}

// author returns the author of a message: a person, or an app by its own name.
func (w *workspace) author(ctx context.Context, said *slack.Message) string {
	if said.User != "" {
		return w.name(ctx, said.User)
	}
	return named(cmp.Or(said.BotID, "app"), said.Username)
}

// maxFile bounds a file that is read, in bytes.
const maxFile = 5 << 20

var errTooLarge = fmt.Errorf("it is larger than %d bytes", maxFile)

// download downloads a file with the bot's token, which is sent only to Slack.
func (w *workspace) download(ctx context.Context, f attachment) (chat.File, error) {
	if f.Size > maxFile {
		return chat.File{}, fmt.Errorf("file %q: %w", f.Name, errTooLarge)
	}
	if !w.atSlack(f.URL) {
		return chat.File{}, fmt.Errorf("file %q: its address is not Slack's, and the bot's token is sent only to Slack",
			f.Name)
	}
	out := &limited{left: maxFile}
	if err := w.account.Load().api.GetFileContext(ctx, f.URL, out); err != nil {
		return chat.File{}, fmt.Errorf("file %q: %w", f.Name, err)
	}
	return chat.File{Name: f.Name, MIMEType: f.Type, Data: out.data}, nil
}

// slackDomains are the domains of Slack's files: the general one and that of the US government.
var slackDomains = []string{"slack.com", "slack-gov.com"}

// atSlack reports whether an address is one of Slack's domains over HTTPS, or below the configured API.
func (w *workspace) atSlack(address string) bool {
	at, err := url.Parse(address)
	if err != nil || at.User != nil {
		return false
	}
	if api, err := url.Parse(w.APIURL); err == nil && api.Host != "" && at.Scheme == api.Scheme && at.Host == api.Host {
		return true
	}
	return at.Scheme == "https" && at.Port() == "" && slices.ContainsFunc(slackDomains, func(domain string) bool {
		return at.Host == domain || strings.HasSuffix(at.Host, "."+domain)
	})
}

// limited is a buffer that fails beyond its limit.
type limited struct {
	data []byte
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errTooLarge
	}
	l.left -= len(p)
	l.data = append(l.data, p...)
	return len(p), nil
}
