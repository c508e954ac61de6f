package slackbot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/lazyregexp"
)

const (
	// questionPoll is the interval of checks whether a question was answered elsewhere.
	questionPoll = time.Second
	// withdrawTime bounds the wait for the end of a question whose call ends when the process ends.
	withdrawTime = 3 * time.Second
	// maxApprovers bounds the people who are asked in direct messages.
	maxApprovers = 20
	// maxQuestion bounds the text of a question, in bytes: a section takes 3,000 characters.
	maxQuestion = 2900
)

// questions are the questions that this process has posted.
type questions struct {
	mu   sync.Mutex
	wake map[string]chan struct{} // by question ID; a receive checks at once
}

func (q *questions) await(id string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	wake := make(chan struct{}, 1)
	q.wake[id] = wake
	return wake
}

func (q *questions) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.wake, id)
}

func (q *questions) look(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case q.wake[id] <- struct{}{}:
	default:
	}
}

// reaches reports whether the bot can show a question to people: it came from Slack, or the tenant's workspace has a
// channel for questions.
func (b *Bot) reaches(q *approval.Question) bool { return b.workspaceFor(q) != nil }

func (b *Bot) workspaceFor(q *approval.Question) *workspace {
	team, _, _, _ := splitConversation(q.Caller.Session)
	for _, w := range b.workspaces {
		a := w.account.Load()
		if a == nil || !w.serves(q.Caller.Tenant) {
			continue
		}
		if q.Caller.Frontend == pipeline.FrontendSlack && a.team == team ||
			q.Caller.Frontend != pipeline.FrontendSlack && w.hasChannel() {
			return w
		}
	}
	return nil
}

// hasChannel reports whether questions go to a channel of their own.
func (w *workspace) hasChannel() bool {
	return w.Approvals != "" && w.Approvals != ApproveInThread && w.Approvals != ApproveInDM
}

// asked posts a question in the background, so that the call does not wait.
func (b *Bot) asked(q *approval.Question) {
	w := b.workspaceFor(q)
	if w == nil {
		return
	}
	b.work.Go(func() {
		t := b.queues.turn(q.Caller.Session)
		if t != nil {
			t.surface.waits(b.ctx, q.Tool, t.surface.words.waits)
			defer t.surface.resumes(context.WithoutCancel(b.ctx), q.Tool)
		}
		places := w.places(b.ctx, q)
		if t != nil && slices.ContainsFunc(places, func(p spot) bool { return p.thread == t.message.Thread }) {
			t.surface.ask(b.ctx)
		}
		list := w.postQuestion(b.ctx, q, places)
		if err := b.journal.addQuestion(context.WithoutCancel(b.ctx), w.Name, list); err != nil {
			w.logger.Error("writing an approval request to the journal failed", "err", err)
		}
		b.follow(b.ctx, w, q, list)
	})
}

// postQuestion posts a question and returns the messages. It continues while the process ends, because the journal must
// know of each message.
func (w *workspace) postQuestion(ctx context.Context, q *approval.Question, places []spot) []posted {
	approvers, described := w.approvers(ctx, q), w.describe(ctx, q, places)
	messages := make([][]slack.MsgOption, len(places))
	for i, p := range places {
		messages[i] = []slack.MsgOption{slack.MsgOptionText(clipEscaped(q.Text(p.locale), maxQuestion), false),
			slack.MsgOptionBlocks(questionBlocks(q, described[i], p.locale, approvers)...)}
		if p.thread != "" {
			messages[i] = append(messages[i], slack.MsgOptionTS(p.thread))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	var list []posted
	for i, p := range places {
		channel, ts, err := w.post(ctx, p.channel, messages[i]...)
		if err != nil {
			w.logger.Error("posting an approval request failed", "channel", p.channel, "err", err)
			continue
		}
		list = append(list, posted{q.ID, channel, ts})
	}
	return list
}

// moment formats a time that Slack shows in each reader's time zone.
func moment(at time.Time) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", at.Unix(), at.UTC().Format("2006-01-02 15:04 UTC"))
}

// maxUserID is the longest ID of a user that userID matches, in bytes.
const maxUserID = 31

var userID = lazyregexp.New(`^[UW][A-Z0-9]{2,30}$`)

// isUser reports whether a name is the ID of a Slack user, which can be shown as a mention.
func isUser(name string) bool { return userID().MatchString(name) }

// spot is a place for a message and the language of its readers.
type spot struct{ channel, thread, locale string }

// places returns where to post the question: the configured channel, the approvers' direct messages, or the thread.
func (w *workspace) places(ctx context.Context, q *approval.Question) []spot {
	if w.hasChannel() {
		return []spot{{channel: w.Approvals, locale: w.bot.options.Locale}}
	}
	_, channel, thread, _ := splitConversation(q.Caller.Session)
	here := []spot{{channel, thread, w.locale(ctx, q.Caller.User)}}
	list, people := here, w.named(q)
	if w.Approvals == ApproveInDM {
		list, people = nil, w.approvers(ctx, q)
	}
	for _, user := range people {
		dm, _, _, err := w.account.Load().api.OpenConversationContext(ctx,
			&slack.OpenConversationParameters{Users: []string{user}})
		if err != nil {
			w.logger.Warn("an approver has no direct message", "user", user, "err", err)
			continue
		}
		list = append(list, spot{channel: dm.ID, locale: w.locale(ctx, user)})
	}
	if len(list) == 0 {
		return here
	}
	return list
}

// named returns the Slack users whom the policy's rule names, except the caller. They also get direct messages.
func (w *workspace) named(q *approval.Question) (users []string) {
	for _, user := range q.Approvers.Users {
		if isUser(user) && user != q.Caller.User && len(users) < maxApprovers {
			users = append(users, user)
		}
	}
	return users
}

// approvers returns the users who may answer, as far as the question names Slack users and user groups.
func (w *workspace) approvers(ctx context.Context, q *approval.Question) []string {
	if q.Approvers.IsZero() {
		return []string{q.Caller.User}
	}
	seen, list := map[string]bool{}, []string{}
	add := func(user string) {
		if isUser(user) && !seen[user] && len(list) < maxApprovers {
			seen[user], list = true, append(list, user)
		}
	}
	if _, err := w.groups(ctx, ""); err != nil {
		w.logger.Warn("the approvers' groups are not known", "err", err)
	}
	for _, user := range q.Approvers.Users {
		add(user)
	}
	for _, name := range q.Approvers.Groups {
		for _, user := range w.people.in(name) {
			add(user)
		}
	}
	return list
}

// follow waits until a question has ended, here or elsewhere, and updates its messages.
func (b *Bot) follow(ctx context.Context, w *workspace, q *approval.Question, list []posted) {
	wake := b.questions.await(q.ID)
	defer b.questions.forget(q.ID)
	detached := context.WithoutCancel(ctx)
	ticker := time.NewTicker(questionPoll)
	defer ticker.Stop()
	var last <-chan time.Time
	ended := ctx.Done()
	for {
		outcome, by, err := b.options.Approvals.Outcome(detached, q.ID)
		if err == nil && outcome != approval.Pending || errors.Is(err, approval.ErrUnknown) {
			w.showOutcome(detached, q, list, outcome, by)
			return
		}
		select {
		case <-wake:
		case <-ticker.C:
		case <-ended: // the call is being cancelled, and the question with it
			ended, last = nil, time.After(withdrawTime)
			ticker.Reset(questionPoll / 20)
		case <-last:
			return // another process follows the question, which is in the journal
		}
	}
}

// close shows the outcome in the messages of a question.
func (w *workspace) showOutcome(ctx context.Context, q *approval.Question, list []posted, outcome, by string) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	locale := w.locale(ctx, q.Caller.User)
	state := ending(wordsFor(locale), outcome, by, w.bot.options.Store.Time())
	for _, p := range list {
		err := w.rewrite(ctx, p.Channel, p.TS, slack.MsgOptionText(state, false),
			slack.MsgOptionBlocks(endedBlocks(q, locale, state)...))
		if err != nil {
			w.logger.Error("updating a question's message failed", "question", q.ID, "err", err)
		}
	}
	if err := w.bot.journal.removeQuestion(ctx, q.ID); err != nil {
		w.logger.Error("removing a question from the journal failed", "err", err)
	}
}

// ending describes the outcome of a question, which was noticed at the given time.
func ending(words *words, outcome, by string, at time.Time) string {
	now := moment(at)
	say := words.withdrawn
	switch outcome {
	case approval.Yes:
		say = words.approved
	case approval.No:
		say = words.denied
	case approval.Expired:
		return words.expired
	default:
		return say
	}
	if !isUser(by) {
		say = strings.Replace(say, "<@%s>", "%s", 1)
		by = clipEscaped(by, maxFact)
	}
	return fmt.Sprintf(say, by, now)
}

// takeOverQuestion handles a question of a dead process. A question of a turn in Slack has ended with it; others are
// still waiting.
func (b *Bot) takeOverQuestion(ctx context.Context, w *workspace, p posted) {
	if b.options.Approvals == nil {
		return
	}
	q, err := b.options.Approvals.Question(ctx, p.ID)
	for err != nil && !errors.Is(err, approval.ErrUnknown) {
		w.logger.Error("loading a question of another process failed: retrying", "question", p.ID, "err",
			err)
		select {
		case <-time.After(startPause):
		case <-ctx.Done():
			return
		}
		q, err = b.options.Approvals.Question(ctx, p.ID)
	}
	if err != nil {
		w.logger.Warn("a question no longer exists", "question", p.ID)
		if err := b.journal.removeQuestion(ctx, p.ID); err != nil {
			w.logger.Error("removing a question from the journal failed", "err", err)
		}
		return
	}
	if q.Caller.Frontend == pipeline.FrontendSlack {
		if err := b.options.Approvals.Withdraw(ctx, p.ID); err != nil {
			w.logger.Error("withdrawing a question failed", "err", err)
		}
	}
	b.follow(ctx, w, q, []posted{p})
}

// decide records the answer of the person who pressed a button. Slack identifies the person; the approvals decide
// whether the person may answer.
func (b *Bot) decide(ctx context.Context, w *workspace, by person, at spot, id string, yes bool) {
	if b.options.Approvals == nil {
		return
	}
	err := b.options.Approvals.Answer(ctx, id, approval.Answer{Yes: yes, By: w.as(by)})
	words := wordsFor(by.locale)
	switch {
	case err == nil:
		b.questions.look(id)
		return
	case errors.Is(err, approval.ErrMayNot):
		w.logger.Info("somebody pressed a button for a question that they may not answer", "user", by.id, "question",
			id)
		text := words.mayNot
		if q, err := b.options.Approvals.Question(ctx, id); err == nil && !q.Approvers.IsZero() {
			text += " " + fmt.Sprintf(words.may,
				clipEscaped(q.Approvers.In(by.locale), maxQuestion, q.Approvers.Users...))
		} else if err == nil && isUser(q.Caller.User) {
			text += " " + fmt.Sprintf(words.may, "<@"+q.Caller.User+">")
		}
		w.whisper(ctx, at, by.id, text)
	case errors.Is(err, approval.ErrUnknown):
		b.questions.look(id)
		w.whisper(ctx, at, by.id, words.noQuestion)
	default:
		w.logger.Error("recording an answer failed", "question", id, "err", err)
	}
}

// whisper shows a text to one person, where they pressed a button.
func (w *workspace) whisper(ctx context.Context, at spot, user, text string) {
	options := []slack.MsgOption{slack.MsgOptionText(text, false)}
	if at.thread != "" {
		options = append(options, slack.MsgOptionTS(at.thread))
	}
	if err := w.postTo(ctx, at.channel, user, options...); err != nil {
		w.logger.Warn("notifying a person failed", "user", user, "err", err)
	}
}
