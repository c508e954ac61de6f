package slackbot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/internal/clip"
)

// Forms: a server's question in the middle of a call is posted in the thread, with buttons, one of which opens a modal
// with the form's fields. The question is in the store, because Slack may report a click to any replica; the answer
// comes back through the store. Only the caller may press the buttons. Answers are validated here.

// formTime bounds the wait of a question whose call has no deadline.
const formTime = 5 * time.Minute

// storedForm is a question in the store.
type storedForm struct {
	Team    string              `json:"team"`
	Channel string              `json:"channel"`
	Thread  string              `json:"thread"`
	User    string              `json:"user"`
	Locale  string              `json:"locale"`
	Server  string              `json:"server"`
	Tool    string              `json:"tool"`
	Request elicitation.Request `json:"request"`
}

func (f *storedForm) question() (*elicitation.Question, error) {
	q, err := elicitation.Parse(&f.Request)
	if err == nil {
		q.Server, q.Tool = f.Server, f.Tool
	}
	return q, err
}

// fill asks the person of the turn in its thread and waits for the answer.
func (s *surface) fill(ctx context.Context, q *elicitation.Question) (none elicitation.Answer, err error) {
	id, journal, lasting := "frm_"+rand.Text(), s.w.bot.journal, context.WithoutCancel(ctx)
	expires := journal.store.Time().Add(formTime)
	if deadline, ok := ctx.Deadline(); ok {
		expires = journal.store.Time().Add(time.Until(deadline))
	}
	wake := s.w.bot.questions.await(id)
	defer s.w.bot.questions.forget(id)
	err = journal.askForm(ctx, id, s.m, &storedForm{s.m.Team, s.m.Channel, s.m.Thread, s.m.User, s.who.locale, q.Server,
		q.Tool, *q.Request()}, expires)
	if err != nil {
		s.w.logger.Error("writing a server's question to the journal failed: nobody is asked", "err", err)
		return none, err
	}
	defer func() {
		if lost := journal.closeForm(lasting, id); lost != nil {
			s.w.logger.Error("removing a question from the journal failed", "err", lost)
		}
	}()
	s.waits(ctx, q.Tool, s.words.waitsAnswer)
	defer s.resumes(lasting, q.Tool)
	s.ask(ctx)
	ts, err := s.postForm(ctx, id, q, expires)
	if err != nil {
		return none, err
	}
	if err := journal.postedForm(lasting, id, ts); err != nil {
		s.w.logger.Error("writing a question's message to the journal failed", "err", err)
	}
	state := s.words.withdrawn
	defer func() { s.w.closeForm(lasting, s.m, ts, q, s.who.locale, state) }()
	answer, err := journal.awaitForm(ctx, id, wake)
	switch {
	case err == nil && answer.Action == elicitation.Accept:
		state = fmt.Sprintf(s.words.answered, s.m.User, moment(journal.store.Time()))
	case err == nil:
		state = fmt.Sprintf(s.words.declined, s.m.User, moment(journal.store.Time()))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		state = s.words.expired
	}
	return answer, err
}

// postForm posts the question in the thread.
func (s *surface) postForm(ctx context.Context, id string, q *elicitation.Question, expires time.Time) (ts string,
	err error) {
	buttons := []slack.BlockElement{button(actionForm, id, s.words.answer).WithStyle(slack.StylePrimary),
		button(actionFormNo, id, s.words.decline)}
	if q.Form == nil {
		open := button(actionPage, id, clip.Marked(fmt.Sprintf(s.words.openPage, q.URL.Host), maxButton))
		open.URL = q.URL.String()
		buttons = []slack.BlockElement{open, button(actionFormYes, id, s.words.opened).WithStyle(slack.StylePrimary),
			button(actionFormNo, id, s.words.decline)}
	}
	blocks := formBlocks(s.m.User, q, s.who.locale, fmt.Sprintf(s.words.until, moment(expires)),
		slack.NewActionBlock("", buttons...))
	posting, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime) // the journal must know of each message
	defer cancel()
	_, ts, err = s.w.post(posting, s.m.Channel, slack.MsgOptionTS(s.m.Thread),
		slack.MsgOptionText(clipEscaped(q.Text(s.who.locale), maxQuestion), false), slack.MsgOptionBlocks(blocks...))
	if err != nil {
		s.w.logger.Error("posting a server's question failed", "channel", s.m.Channel, "err", err)
	}
	return ts, err
}

// formBlocks show the question, its addressee, its state and buttons.
func formBlocks(user string, q *elicitation.Question, locale, state string, buttons ...slack.Block) []slack.Block {
	return append([]slack.Block{
		slack.NewSectionBlock(plain(clip.Marked(q.Text(locale), maxQuestion)), nil, nil),
		slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, "<@"+user+">  "+state, false, false)),
	}, buttons...)
}

// closeForm shows the outcome in the message of a question. m is the message of its turn.
func (w *workspace) closeForm(ctx context.Context, m *message, ts string, q *elicitation.Question, locale,
	state string) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	err := w.rewrite(ctx, m.Channel, ts, slack.MsgOptionText(state, false),
		slack.MsgOptionBlocks(formBlocks(m.User, q, locale, state)...))
	if err != nil {
		w.logger.Error("updating a question's message failed", "err", err)
	}
}

// closeForms withdraws the questions of a turn that is over.
func (w *workspace) closeForms(ctx context.Context, m *message) {
	left, err := w.bot.journal.takeForms(ctx, m)
	if err != nil {
		w.logger.Error("the questions of an answer that broke off could not be withdrawn", "err", err)
	}
	for _, f := range left {
		if q, err := f.question(); err == nil && f.ts != "" {
			w.closeForm(ctx, m, f.ts, q, f.Locale, wordsFor(f.Locale).withdrawn)
		}
	}
}

// pressForm handles a click on a question's button.
func (w *workspace) pressForm(ctx context.Context, callback *slack.InteractionCallback, action *slack.BlockAction,
	at spot) {
	f, ok := w.formFor(ctx, action.Value, &callback.User, at)
	if !ok {
		return
	}
	form := f.Request.Mode == elicitation.ModeForm // a form is accepted by its modal
	switch {
	case action.ActionID == actionFormNo:
		w.answerForm(ctx, action.Value, elicitation.Answer{Action: elicitation.Decline})
	case action.ActionID == actionFormYes && !form:
		w.answerForm(ctx, action.Value, elicitation.Answer{Action: elicitation.Accept})
	case action.ActionID == actionForm && form:
		w.openForm(ctx, action.Value, f, callback.TriggerID, at)
	}
}

// formFor returns the waiting question if the person made the call, and otherwise shows the person the reason. A caller
// may use the bot.
func (w *workspace) formFor(ctx context.Context, id string, who *slack.User, at spot) (*storedForm, bool) {
	f, err := w.bot.journal.form(ctx, id)
	if err == nil && f != nil && f.Team == w.account.Load().team && f.User == who.ID {
		return f, true // no request was made to Slack yet
	}
	user, by := who.ID, w.visitor(ctx, who.ID, w.homeFromEvent(who.TeamID))
	words := wordsFor(by.locale)
	switch {
	case !w.welcomes(by.home):
		w.whisper(ctx, at, user, w.refusal(by))
	case err != nil:
		w.logger.Error("looking up a question failed", "err", err)
		w.whisper(ctx, at, user, words.failed)
	case f == nil || f.Team != w.account.Load().team:
		w.whisper(ctx, at, user, words.noQuestion)
	default:
		w.logger.Info("somebody pressed a button of a question that is for somebody else", "user", user)
		w.whisper(ctx, at, user, words.mayNot)
	}
	return nil, false
}

// openForm opens the modal. Slack accepts a trigger for three seconds (docs.slack.dev/surfaces/modals).
func (w *workspace) openForm(ctx context.Context, id string, f *storedForm, trigger string, at spot) {
	q, err := f.question()
	if err == nil {
		_, err = w.account.Load().api.OpenViewContext(ctx, trigger, modal(id, q, f.Locale))
	}
	if err == nil {
		return
	}
	words := wordsFor(f.Locale)
	text := words.failed
	if code := slackError(err); code == "expired_trigger_id" || code == "exchanged_trigger_id" {
		text = words.pressAgain
	} else {
		w.logger.Error("opening a modal failed", "err", err)
	}
	w.whisper(ctx, at, f.User, text)
}

// submitForm handles a submitted modal. It returns the payload of the acknowledgement, which shows the errors below the
// fields.
func (w *workspace) submitForm(ctx context.Context, callback *slack.InteractionCallback) any {
	id := callback.View.PrivateMetadata
	f, err := w.bot.journal.form(ctx, id)
	words := wordsFor(w.bot.options.Locale)
	if err != nil {
		w.logger.Error("looking up a question failed", "err", err)
		return refused(words.failed)
	}
	if f == nil || f.Team != w.account.Load().team || f.User != callback.User.ID {
		if by := w.visitor(ctx, callback.User.ID, w.homeFromEvent(callback.User.TeamID)); !w.welcomes(by.home) {
			return refused(w.refusal(by))
		}
		return refused(words.noQuestion)
	}
	words = wordsFor(f.Locale)
	q, err := f.question()
	if err != nil || q.Form == nil || callback.View.State == nil {
		return refused(words.failed)
	}
	content, problems := written(q.Form, callback.View.State.Values, f.Locale)
	if len(problems) > 0 {
		return slack.NewErrorsViewSubmissionResponse(problems)
	}
	if !w.answerForm(ctx, id, elicitation.Answer{Action: elicitation.Accept, Content: content}) {
		return refused(words.noQuestion)
	}
	return nil
}

// answerForm stores the first answer.
func (w *workspace) answerForm(ctx context.Context, id string, answer elicitation.Answer) bool {
	first, err := w.bot.journal.answerForm(ctx, id, answer)
	if err != nil {
		w.logger.Error("recording an answer failed", "err", err)
	}
	if first {
		w.bot.questions.look(id)
	}
	return first
}
