package slackbot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/clip"
)

// When gathered parts are sent.
const (
	// firstWait delays the first words, so that the answer does not begin with half a word.
	firstWait = 100 * time.Millisecond
	// textWait delays text that is shorter than enoughText, in characters.
	textWait   = time.Second
	enoughText = 256
	// streamPause and updatePause are the minimum intervals of calls, from Slack's tier for chat.appendStream and its
	// advice for chat.update.
	streamPause = 600 * time.Millisecond
	updatePause = 3 * time.Second
)

// mostText bounds the text in the thread, in characters. A longer answer is also uploaded as a file.
const mostText = 30_000

// surface shows a turn in its thread. It gathers the engine's output, which one goroutine sends in order.
type surface struct {
	w   *workspace
	m   *message
	who person
	// free allows another turn to run while this one waits for people.
	free  func()
	words *words
	out   *answerWriter
	wake  chan struct{}
	// answer is the number of a complete answer.
	answer int64
	// begun reports whether the goroutine runs; closing ends it, and done reports its end.
	begun         bool
	closing, done chan struct{}

	// statusMu is held while the session's status is sent. sentStatus is the last status that was sent.
	statusMu   sync.Mutex
	sentStatus string

	mu      sync.Mutex // guards the fields below
	pending []part
	since   time.Time // when the first pending part was gathered
	cards   []card
	written int // in characters
	left    int // characters that only the file has
	asking  int // waiting questions
	ended   bool
}

// part is a piece of the answer: text, or the new state of a card.
type part struct {
	text string
	// note reports whether the text is the bot's and may mention people; sanitized that mentions were removed.
	note, sanitized bool
	card            *card
	// question separates the parts before a question from those below it. It is called when all parts before it are
	// sent.
	question func()
}

// isText reports whether the part is text of the answer.
func (p part) isText() bool { return p.card == nil && !p.note && p.question == nil }

// card is a tool call as people see it.
type card struct {
	id, name, title, output string
	status                  slack.TaskCardStatus
}

// open reports whether the call has not ended yet.
func (c card) open() bool {
	return c.status == slack.TaskCardStatusInProgress || c.status == slack.TaskCardStatusPending
}

// openCard is an open card in the journal.
type openCard struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

var _ chat.Surface = (*surface)(nil)

func newSurface(w *workspace, m *message, who person, free func()) *surface {
	s := &surface{
		w: w, m: m, who: who, free: free, words: wordsFor(who.locale), wake: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.out = &answerWriter{surface: s}
	return s
}

// begin shows that the bot works, and starts to send.
func (s *surface) begin(ctx context.Context) {
	s.begun = true
	s.w.bot.work.Go(func() {
		defer close(s.done)
		s.showStatus(ctx)
		s.send(ctx)
	})
}

// send sends gathered parts when they are due, until closing.
func (s *surface) send(ctx context.Context) {
	for {
		var timer <-chan time.Time
		if at, ok := s.due(); ok {
			timer = time.After(time.Until(at))
		}
		select {
		case <-s.wake:
		case <-timer:
			s.sendNow(ctx)
		case <-s.closing:
			return
		}
	}
}

// sendNow sends the gathered parts. It continues after the turn is canceled, because the journal must know of each
// message.
func (s *surface) sendNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	_ = s.out.write(ctx, s.takePending()) // parts that could not be sent are kept
}

// due returns when to send the gathered parts, or to end an idle stream. ok is false if there is nothing to do.
func (s *surface) due() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return s.out.opened.Add(s.w.bot.streamTime), s.out.ts != "" && !s.out.plain
	}
	wait, characters := textWait, 0
	for _, p := range s.pending {
		characters += utf8.RuneCountInString(p.text)
		if p.card != nil || p.question != nil || characters >= enoughText {
			wait = 0
		}
	}
	if s.out.last.IsZero() {
		wait = min(wait, firstWait)
	}
	at = s.since.Add(wait)
	if next := s.out.next(); next.After(at) {
		at = next
	}
	return at, true
}

// takePending removes and returns the gathered parts.
func (s *surface) takePending() []part {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := s.pending
	s.pending = nil
	return parts
}

// back returns parts that could not be sent.
func (s *surface) back(parts []part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(parts, s.pending...)
}

// add gathers a part. The caller holds mu.
func (s *surface) add(p part) {
	if len(s.pending) == 0 {
		s.since = time.Now()
	}
	last := len(s.pending) - 1
	plain := func(p part) bool { return p.card == nil && p.question == nil }
	switch {
	case plain(p) && last >= 0 && plain(s.pending[last]) && s.pending[last].note == p.note &&
		s.pending[last].sanitized == p.sanitized:
		s.pending[last].text += p.text
	case p.card != nil:
		if i := slices.IndexFunc(s.pending, func(q part) bool {
			return q.card != nil &&
				q.card.id == p.card.id
		}); i >= 0 {
			s.pending[i] = p
			break
		}
		fallthrough
	default:
		s.pending = append(s.pending, p)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Text continues the answer.
func (s *surface) Text(delta string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text(delta)
}

// text gathers text and counts the rest that only the file has. The caller holds mu.
func (s *surface) text(delta string) {
	rest := delta
	if s.left == 0 {
		var head string
		if head, rest = cut(delta, mostText-s.written); head != "" {
			s.written += utf8.RuneCountInString(head)
			s.add(part{text: head})
		}
	}
	s.left += utf8.RuneCountInString(rest)
}

// ToolStarted shows a card.
func (s *surface) ToolStarted(id, name, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if title == "" {
		title = name
	}
	s.cards = append(s.cards, card{id: id, name: name, title: clip.Marked(oneLine(title), maxCard),
		status: slack.TaskCardStatusInProgress})
	s.show(len(s.cards) - 1)
}

// ToolEnded shows the outcome of the call.
func (s *surface) ToolEnded(id string, outcome pipeline.Outcome, short string) {
	s.change(func(c *card) bool { return c.id == id }, func(c *card) {
		c.status, c.output = slack.TaskCardStatusComplete, clip.Marked(oneLine(short), maxCard)
		if outcome != pipeline.OK {
			c.status = slack.TaskCardStatusError
		}
	})
}

// maxCard bounds a field of a card, in bytes: Slack takes 256 characters.
const maxCard = 250

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// show gathers the state of a card. The caller holds mu.
func (s *surface) show(i int) {
	c := s.cards[i]
	s.add(part{card: &c})
}

// change changes the first matching card.
func (s *surface) change(meant func(*card) bool, how func(*card)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.cards {
		if meant(&s.cards[i]) {
			how(&s.cards[i])
			s.show(i)
			return
		}
	}
}

// Notice shows a text in italics, in its own paragraph. It omits the notice of a broken answer, which was already ended
// in the thread, and retries, which would stay in the answer.
func (s *surface) Notice(kind chat.Notice, text string) {
	if kind == chat.NoticeInterrupted || kind == chat.NoticeRetrying {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(sanitize(text))
}

// note gathers a text that is not part of the answer. The caller holds mu.
func (s *surface) note(text string) {
	if text = oneLine(text); text != "" {
		s.add(part{text: "\n\n_" + text + "_\n\n", note: true})
	}
}

// Prompter is for questions of servers, which only the person sees. Approvals need no Prompter: the bot posts every
// question of its conversations and accepts the answers of everybody who may give them.
func (s *surface) Prompter(chat.ToolCall) approval.Prompter { return approval.Prompter{Fill: s.fill} }

// halt stops sending until finish.
func (s *surface) halt() {
	if s.begun {
		close(s.closing)
		<-s.done
	}
}

// finish writes the end of the turn. It fails if Slack or the journal has not accepted that. The error matches
// errTakenOver if another process has to end the answer.
func (s *surface) finish(ctx context.Context, answer *chat.Answer, err, cause error) error {
	if errors.Is(err, errForbidden) {
		return s.refuse(ctx)
	}
	if err == nil {
		s.answer = answer.Number
	}
	s.conclude(answer, err, cause)
	if err := s.out.end(ctx, s.takePending(), err == nil); err != nil {
		return err
	}
	err = s.upload(ctx, answer)
	s.out.said = err == nil
	return err
}

// broken returns the state of the turn for the process that will end it.
func (s *surface) broken() broken {
	return broken{message: s.m, answer: s.out.ts, cards: openCards(s.out.cards), ending: s.out.said}
}

// conclude gathers the last words.
func (s *surface) conclude(answer *chat.Answer, err, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for i, c := range s.cards {
		if c.open() {
			s.cards[i].status, s.cards[i].output = slack.TaskCardStatusError, oneLine(s.words.stopped)
			s.show(i)
		}
	}
	stopped, byPerson := errors.AsType[*stoppedError](cause)
	switch {
	case err != nil && byPerson && isUser(stopped.by):
		s.note(fmt.Sprintf(s.words.stoppedBy, stopped.by))
	case err != nil && byPerson:
		s.note(s.words.stopped)
	case err != nil && errors.Is(cause, errEnding):
		s.note(s.words.restarted)
	case err != nil:
		s.note(sanitize(failureText(err, s.words)))
	case s.written == 0 && answer.Text == "":
		s.note(s.words.empty)
	case s.written == 0:
		s.text(answer.Text)
	}
	if s.left > 0 && err == nil {
		s.note(s.words.longer)
	}
}

// refuse responds to a person who may not use the bot, unseen by others.
func (s *surface) refuse(ctx context.Context) error {
	text := slack.MsgOptionText(s.w.refusal(s.who), false)
	var err error
	if isDM(s.m.Channel) {
		_, _, err = s.w.post(ctx, s.m.Channel, slack.MsgOptionTS(s.m.Thread), text)
	} else {
		err = s.w.postTo(ctx, s.m.Channel, s.m.User, text)
	}
	if err != nil {
		s.w.logger.Warn("notifying a person who may not use the bot failed", "err", err)
	}
	return nil
}

// upload uploads an answer that was too long to the thread as a file.
func (s *surface) upload(ctx context.Context, answer *chat.Answer) error {
	if s.left == 0 || answer == nil || answer.Text == "" {
		return nil
	}
	_, err := s.w.account.Load().api.UploadFileContext(ctx, slack.UploadFileParameters{
		Content: answer.Text, Filename: "answer.md", FileSize: len(answer.Text), Channel: s.m.Channel,
		ThreadTimestamp: s.m.Thread,
	})
	if err != nil {
		s.w.logger.Error("uploading a long answer failed", "err", err)
	}
	return err
}
