package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
)

// Turn is one message of a person, to be answered.
type Turn struct {
	// Conversation is the door's key for it: 1 to 200 bytes that tell it apart from all others of the tenant, at any door. It begins with
	// the first turn.
	Conversation string
	// Shared says that the door decides who takes part, as in a channel. Otherwise only who began the conversation may go on with it.
	Shared bool
	Caller pipeline.Caller
	// Name is what others call a user. In Shared conversations the model is told who says what, by it. Nil means the user itself.
	Name func(user string) string
	// Text is what the person says. It may be empty if there are Files.
	Text string
	// Files go to the model with the text, as data: those that are text in full, up to Limits.Result; the first four that are PNG, JPEG, GIF
	// or WebP and at most 4 MiB as pictures, where it takes them; others by name and size.
	Files []File
	// Locale is the language to answer in where the text leaves that open, a BCP 47 tag. Empty means Options.Locale.
	Locale string
	// Surface may be nil.
	Surface Surface
}

// File is something that a person sends along.
type File struct {
	Name, MIMEType string
	Data           []byte
}

// Answer is what came of a Turn.
type Answer struct {
	// Text is the whole answer, without what the model wrote before it called tools.
	Text string
	// Number is the answer's in its conversation, for Rate. It is zero if it could not be written down.
	Number int64
	// Model is the one that gave it.
	Model string
	// Rounds is how often the model was asked, Calls how many tool calls were made.
	Rounds, Calls int
	// Usage and Cost are those of all requests of the turn.
	Usage llm.Usage
	Cost  float64
}

// maxConversation is the longest Turn.Conversation, in bytes.
const maxConversation = 200

// Turn answers a person, after the turns of the conversation that came before.
//
// The error is an *Error whose Text is for the person, or ctx's: then the model, its tools and their questions were stopped, and what the
// model had written so far is kept. The conversation remembers what the person saw either way.
func (e *Engine) Turn(ctx context.Context, turn *Turn) (*Answer, error) {
	e.turns.Add(1)
	defer e.turns.Done()
	t := *turn
	if t.Locale == "" {
		t.Locale = e.options.Locale
	}
	started := e.options.Now().In(e.options.Zone)
	r := &run{
		engine: e, turn: &t, caller: t.Caller, place: place{t.Caller.Tenant, t.Conversation}, words: wordsFor(t.Locale),
		started: started, day: started.Format(time.DateOnly), byName: map[string]*catalog.Tool{}, made: map[string]*made{}, outcome: OutcomeOK,
	}
	r.screen.surface = t.Surface
	r.caller.Locale = t.Locale
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

// answered waits for the conversation, and answers in it.
func (r *run) answered(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	limits := r.engine.options.Limits
	leave, err := r.engine.lines.enter(ctx, r.place, limits.Waiting, func() { r.screen.notice(NoticeWaiting, r.words.waiting) })
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

// otherPoll is how often a turn looks whether another process has ended its own.
const otherPoll = 200 * time.Millisecond

// begin opens the conversation, when no other process has a turn under way in it.
func (r *run) begin(ctx context.Context) (err error) {
	e := r.engine
	for told := false; ; told = true {
		r.state, err = e.book.begin(r.place, r.caller.User, r.said(), r.turn.Locale, r.turn.Shared, e.options.Now())
		var other *runningError
		if !errors.As(err, &other) {
			break
		}
		if !told {
			r.screen.notice(NoticeWaiting, r.words.waiting)
		}
		if err := e.bury(ctx, other.process); err != nil {
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
		r.screen.notice(NoticeInterrupted, r.words.wasCut)
	}
	return nil
}

// said is what the conversation remembers of the person's message: of files their names.
func (r *run) said() string {
	text := r.turn.Text
	for _, file := range r.turn.Files {
		text += "\n[" + label(file.Name) + "]"
	}
	return strings.ToValidUTF8(text, "�")
}

// end writes down what the person saw: the answer, or why there is none. An answer that cannot be written down is still one.
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
	err := r.engine.book.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		if err := add(ctx, tx, r.place, r.day, r.caller.User, r.unwritten); err != nil {
			return err
		}
		var err error
		r.answer.Number, err = end(ctx, tx, r.place, text, ending, now)
		return err
	})
	if err != nil {
		r.engine.options.Logger.Error("an answer is not in its conversation", "conversation", r.turn.Conversation, "err", err)
	}
}

// describe says of a turn's span what is known when it has ended. The conversation's key is the door's, and names nobody.
func describe(span *trace.Span, r *run) {
	span.Text(trace.Operation, trace.InvokeAgent)
	span.Text(trace.Door, r.caller.Door)
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

// observe tells of the turn.
func (e *Engine) observe(r *run, err error, traceID string) {
	var told *Error
	switch {
	case errors.As(err, &told):
		r.outcome = Outcome(told.Reason)
		e.options.Logger.Warn("a turn has no answer", "conversation", r.turn.Conversation, "reason", told.Reason, "err", told.Err)
	case err != nil:
		r.outcome = OutcomeStopped
	}
	if e.options.Observe == nil {
		return
	}
	e.options.Observe(Record{
		Door: r.caller.Door, Outcome: r.outcome, Duration: e.options.Now().Sub(r.started),
		Rounds: r.answer.Rounds, Calls: r.answer.Calls, Usage: r.answer.Usage, Cost: r.answer.Cost,
		TraceID: traceID,
	})
}
