package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
)

// run is one turn on its way.
type run struct {
	engine  *Engine
	turn    *Turn
	caller  pipeline.Caller
	place   place
	words   *words
	screen  screen
	started time.Time
	// day is the one that budgets count for.
	day string
	// mark is the word in the lines around data. Nothing outside of this turn knows it.
	mark string

	tools   []*catalog.Tool
	byName  map[string]*catalog.Tool
	request llm.Request
	// state is the conversation before the turn; the first past messages of the request are it.
	state   *state
	past    int
	outcome Outcome

	// partial is what the model has written of an answer that is not whole.
	partial strings.Builder

	// made are the tool calls so far, by key.
	made   map[string]*made
	answer Answer
	// unwritten is what was used and is not in the store yet.
	unwritten Use
}

// prepare puts together what the model is asked.
func (r *run) prepare() {
	if o := &r.engine.options; o.Tools != nil {
		r.tools = o.Tools(r.caller)
	}
	for _, tool := range r.tools {
		r.byName[tool.Name] = tool
	}
	messages := r.history(r.state)
	r.past = len(messages)
	r.mark = rand.Text()[:8]
	r.request = llm.Request{
		System: r.system(), Tools: offered(r.tools, r.turn.Locale), Cache: true,
		Messages: append(messages, llm.Message{Role: llm.RoleUser, Text: r.opening(), Images: r.pictures()}),
	}
}

// loop asks the model and makes the calls that it wants, until it answers.
func (r *run) loop(ctx context.Context) error {
	if err := r.fit(ctx); err != nil {
		return err
	}
	for {
		response, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if len(response.Calls) == 0 || r.request.NoTools {
			r.finish(response)
			return nil
		}
		r.request.Messages = append(r.request.Messages, response.Message())
		results, stuck := r.runCalls(ctx, response.Calls)
		if err := ctx.Err(); err != nil {
			return err
		}
		r.request.Messages = append(r.request.Messages, llm.Message{Role: llm.RoleUser, Results: results})
		r.screen.paragraph()
		switch {
		case stuck:
			r.force(r.words.repeated)
		case r.answer.Rounds >= r.engine.options.Limits.Rounds:
			r.force(r.words.rounds)
		}
	}
}

// force makes the model answer now.
func (r *run) force(note string) {
	r.outcome = OutcomeLimit
	r.request.NoTools = true
	r.request.Messages = append(r.request.Messages, llm.Message{Role: llm.RoleUser, Text: note})
	r.screen.notice(NoticeLimit, r.words.limit)
}

// ask asks the model once, and once more with less if the conversation is longer than it can read.
func (r *run) ask(ctx context.Context) (*llm.Response, error) {
	response, err := r.complete(ctx)
	if !errors.Is(err, llm.ContextWindow) {
		return response, err
	}
	if err := r.shrink(ctx); err != nil {
		return nil, err
	}
	return r.complete(ctx)
}

func (r *run) complete(ctx context.Context) (*llm.Response, error) {
	if err := r.afford(ctx); err != nil {
		return nil, err
	}
	r.partial.Reset()
	response, err := r.engine.options.Provider.Complete(ctx, &r.request, func(d llm.Delta) {
		if ctx.Err() == nil {
			r.partial.WriteString(d.Text)
			r.screen.text(d.Text)
		}
	})
	if err != nil {
		return nil, err
	}
	r.answer.Rounds++
	return response, r.spend(response)
}

// finish takes the model's answer.
func (r *run) finish(response *llm.Response) {
	r.answer.Text, r.answer.Model = strings.TrimSpace(response.Text), response.Model
	note, kind := "", Notice("")
	switch response.Stop {
	case llm.StopLength:
		note, kind = r.words.cut, NoticeLength
		r.outcome = OutcomeLength
	case llm.StopRefusal:
		note, kind = r.words.refused, NoticeRefused
		r.outcome = OutcomeRefused
	case llm.StopFiltered:
		note, kind = r.words.filtered, NoticeRefused
		r.outcome = OutcomeRefused
	}
	if note != "" {
		r.screen.notice(kind, note)
	}
	if r.answer.Text == "" {
		r.answer.Text = note
		if note == "" {
			r.answer.Text = r.words.nothing
			r.screen.text(r.answer.Text)
		}
	}
}
