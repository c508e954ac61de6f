package chat

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/lang"
)

// Turn is one message of a person to answer.
type Turn struct {
	// Conversation is the frontend's key of the conversation: 1 to 200 bytes, unique in the tenant across all
	// frontends. The first turn creates the conversation.
	Conversation string
	// Shared reports whether the frontend decides who takes part, as in a channel. Otherwise only the person who began
	// the conversation may continue it.
	Shared bool
	Caller pipeline.Caller
	// Name returns the display name of a user, by which the model learns the authors in Shared conversations. Nil means
	// the user ID.
	Name func(user string) string
	// Text is the message. It may be empty if there are Files.
	Text string
	// Files are sent to the model with the text, as data: text files up to Limits.Result; the first four PNG, JPEG, GIF
	// or WebP files of at most 4 MiB as images, if the model accepts them; others by name and size.
	Files []File
	// Locale is the person's language, a BCP 47 tag. Empty means Options.Locale. A Text in Japanese is answered in
	// Japanese all the same. The system prompt and the tools' descriptions follow Locale alone, because the model's
	// provider caches them for the whole conversation.
	Locale string
	// Surface may be nil.
	Surface Surface
}

// File is an attached file.
type File struct {
	Name, MIMEType string
	Data           []byte
}

// Answer is the result of a Turn.
type Answer struct {
	// Text is the final answer, without the text that the model wrote before calling tools.
	Text string
	// Number identifies the answer in its conversation, for Rate. It is zero if the answer could not be saved.
	Number int64
	// Model is the name of the model that answered.
	Model string
	// Rounds counts the requests to the model, Calls the tool calls.
	Rounds, Calls int
	// Usage and Cost are the totals of all requests of the turn.
	Usage llm.Usage
	Cost  float64
}

// maxConversation is the longest Turn.Conversation, in bytes.
const maxConversation = 200

// Turn answers a message after all earlier turns of the conversation.
//
// The error is an *Error with a Text for the person, or ctx's: then the model, its calls and their questions were
// cancelled and the partial answer is kept. In both cases the conversation keeps what the person saw.
func (e *Engine) Turn(ctx context.Context, turn *Turn) (*Answer, error) {
	e.turns.Add(1)
	defer e.turns.Done()
	t := *turn
	t.Locale = cmp.Or(t.Locale, e.options.Locale)
	t.Caller.Locale = cmp.Or(lang.Of(t.Text), t.Locale)
	started := e.options.Now().In(e.options.Zone)
	r := &run{
		engine: e, turn: &t, caller: t.Caller, place: place{t.Caller.Tenant, t.Conversation},
		words:   wordsFor(t.Caller.Locale),
		started: started, day: started.Format(time.DateOnly), byName: map[string]*catalog.Tool{},
		made: map[string]*pastCall{}, outcome: OutcomeOK,
	}
	r.display.surface = t.Surface
	if r.caller.Session == "" {
		r.caller.Session = t.Conversation
	}
	ctx, span := e.options.Tracer.Start(ctx, trace.InvokeAgent, trace.Internal, t.Caller.Trace)
	defer span.End()
	err := explain(r.answered(ctx), r.words)
	e.observe(r, err, trace.ID(ctx))
	describe(span, r)
	if err != nil {
		return nil, err
	}
	return &r.answer, nil
}

// answered waits for earlier turns and answers.
func (r *run) answered(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	limits := r.engine.options.Limits
	leave, err := r.engine.queues.enter(ctx, r.place, limits.Waiting, func() {
		r.display.notice(NoticeWaiting, r.words.waiting)
	})
	if err != nil {
		return err
	}
	defer leave()
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.prepare()
	err = r.loop(ctx)
	r.end(err)
	return err
}

func (r *run) check() error {
	t := r.turn
	switch {
	case t.Conversation == "" || len(t.Conversation) > maxConversation || !utf8.ValidString(t.Conversation):
		return fmt.Errorf("the key of a conversation must be 1 to %d bytes of text", maxConversation)
	case len(t.Text) > r.engine.options.Limits.Text:
		return errLong
	case strings.TrimSpace(t.Text) == "" && len(t.Files) == 0:
		return errEmpty
	}
	return nil
}

// otherPoll is the interval for checking whether another process has ended its turn.
const otherPoll = 200 * time.Millisecond

// begin saves the message, after waiting until no other process runs a turn of the conversation.
func (r *run) begin(ctx context.Context) (err error) {
	e := r.engine
	for told := false; ; told = true {
		r.state, err = e.conversations.begin(r.place, r.caller.User, r.said(), r.caller.Locale, r.turn.Shared,
			e.options.Now())
		var other *runningError
		if !errors.As(err, &other) {
			break
		}
		if !told {
			r.display.notice(NoticeWaiting, r.words.waiting)
		}
		if err := e.endTurnsOf(ctx, other.process); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(otherPoll):
		}
	}
	if err != nil {
		return err
	}
	if n := len(r.state.messages); n > 0 && r.state.messages[n-1].ending == endingCut {
		r.display.notice(NoticeInterrupted, r.words.wasCut)
	}
	return nil
}

// said returns the person's message as saved, with the names of the files.
func (r *run) said() string {
	text := r.turn.Text
	for _, file := range r.turn.Files {
		text += "\n[" + label(file.Name) + "]"
	}
	return strings.ToValidUTF8(text, "�")
}

// end saves what the person saw: the answer, or why there is none. An answer that cannot be saved is still returned.
func (r *run) end(failure error) {
	text, ending := r.answer.Text, ""
	var told *Error
	switch failure = explain(failure, r.words); {
	case errors.As(failure, &told):
		text, ending = strings.TrimSpace(r.partial.String()+"\n\n"+told.Text), endingFailed
	case failure != nil:
		text, ending = strings.TrimSpace(r.partial.String()+"\n\n"+r.words.stopped), endingStopped
	}
	now := r.engine.options.Now()
	err := r.engine.conversations.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		if err := add(ctx, tx, r.place, r.day, r.caller.User, r.unwritten); err != nil {
			return err
		}
		var err error
		r.answer.Number, err = end(ctx, tx, r.place, text, ending, now)
		return err
	})
	if err != nil {
		r.engine.options.Logger.Error("an answer could not be saved", "conversation", r.turn.Conversation, "err", err)
	}
}

// describe sets the attributes of a turn's span. The conversation's key is the frontend's and identifies nobody.
func describe(span *trace.Span, r *run) {
	span.Text(trace.Operation, trace.InvokeAgent)
	span.Text(trace.Frontend, r.caller.Frontend)
	span.Text(trace.Tenant, r.caller.Tenant)
	span.Text(trace.Conversation, r.turn.Conversation)
	span.Text(trace.ResponseModel, r.answer.Model)
	span.Text(trace.Outcome, string(r.outcome))
	span.Int(trace.Rounds, int64(r.answer.Rounds))
	span.Int(trace.Calls, int64(r.answer.Calls))
	span.Int(trace.InputTokens, int64(r.answer.Usage.Input))
	span.Int(trace.OutputTokens, int64(r.answer.Usage.Output))
	if r.outcome != OutcomeOK && r.outcome != OutcomeLimit && r.outcome != OutcomeStopped {
		span.Fail(string(r.outcome))
	}
}

// observe logs a failure and calls Options.Observe.
func (e *Engine) observe(r *run, err error, traceID string) {
	var told *Error
	switch {
	case errors.As(err, &told):
		r.outcome = Outcome(told.Reason)
		e.options.Logger.Warn("a turn has no answer", "conversation", r.turn.Conversation, "reason",
			told.Reason, "err", told.Err)
	case err != nil:
		r.outcome = OutcomeStopped
	}
	if e.options.Observe == nil {
		return
	}
	e.options.Observe(Record{
		Frontend: r.caller.Frontend, Outcome: r.outcome, Duration: e.options.Now().Sub(r.started),
		Rounds: r.answer.Rounds, Calls: r.answer.Calls, TraceID: traceID,
	})
}
