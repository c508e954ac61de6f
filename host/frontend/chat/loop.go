package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
)

// run is the state of one turn.
type run struct {
	engine  *Engine
	turn    *Turn
	caller  pipeline.Caller
	place   place
	words   *words
	display display
	started time.Time
	// day is the day of the daily budgets.
	day string
	// mark is a random word in the lines around data, known only within the turn.
	mark string

	tools   []*catalog.Tool
	byName  map[string]*catalog.Tool
	request llm.Request
	// state is the conversation before the turn, which makes up the first past messages of the request.
	state   *state
	past    int
	outcome Outcome

	// partial is the text of an incomplete answer.
	partial strings.Builder

	// made are the tool calls so far, by key. shown counts those that the Surface was shown.
	made   map[string]*pastCall
	shown  int
	answer Answer
	// unwritten is use that is not in the store yet.
	unwritten Use
}

// prepare assembles the request.
func (r *run) prepare() {
	if o := &r.engine.options; o.Tools != nil {
		r.tools = o.Tools(r.caller)
	}
	var deferred []*catalog.Tool
	if o := &r.engine.options; o.Deferred != nil {
		deferred = o.Deferred(r.caller)
	}
	for _, tool := range slices.Concat(r.tools, deferred) {
		r.byName[tool.Name] = tool
	}
	offer := offered(r.tools, r.turn.Locale)
	for _, tool := range offered(deferred, r.turn.Locale) {
		tool.Deferred = true
		offer = append(offer, tool)
	}
	messages := r.history(r.state)
	r.past = len(messages)
	r.mark = rand.Text()[:8]
	r.request = llm.Request{
		System: r.system(), Tools: offer, Cache: true,
		Retrying: func(retry llm.Retry) { r.display.notice(NoticeRetrying, r.words.retry(retry)) },
		Messages: append(messages, llm.Message{Role: llm.RoleUser, Text: r.opening(), Images: r.pictures()}),
	}
}

// loop sends the request and runs the model's calls until it answers.
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
		r.display.paragraph()
		switch {
		case stuck:
			r.force(r.words.repeated)
		case r.answer.Rounds >= r.engine.options.Limits.Rounds:
			r.force(r.words.rounds)
		}
	}
}

// force makes the model answer without further calls.
func (r *run) force(note string) {
	r.outcome = OutcomeLimit
	r.request.NoTools = true
	r.request.Messages = append(r.request.Messages, llm.Message{Role: llm.RoleUser, Text: note})
	r.display.notice(NoticeLimit, r.words.limit)
}

// ask sends the request, and a shortened one if it exceeds the context window.
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
	if err := r.checkBudgets(ctx); err != nil {
		return nil, err
	}
	r.partial.Reset()
	response, err := r.engine.options.Provider.Complete(ctx, &r.request, func(d llm.Delta) {
		if ctx.Err() == nil {
			r.partial.WriteString(d.Text)
			r.display.text(d.Text)
		}
	})
	if err != nil {
		return nil, err
	}
	r.answer.Rounds++
	return response, r.recordUse(response)
}

// finish takes over the model's final answer.
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
		r.display.notice(kind, note)
	}
	if r.answer.Text == "" {
		r.answer.Text = note
		if note == "" {
			r.answer.Text = r.words.nothing
			r.display.text(r.answer.Text)
		}
	}
}
