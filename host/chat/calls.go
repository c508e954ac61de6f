package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/internal/callclock"
	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// maxRepeats is the number of the same call that ends the loop. Those before it are answered from the first.
const maxRepeats = 3

// made is a call that was made in this turn.
type made struct {
	times  int
	result llm.Result
	// again says that the call never got to its tool, and so may be repeated.
	again bool
	// reads says that its tool changes nothing.
	reads bool
}

// ended is a call of a round that was made.
type ended struct {
	result  llm.Result
	outcome pipeline.Outcome
	reads   bool // its tool changes nothing
}

// changed reports whether the call has changed what others read, and mayHave whether that is possible: one that failed in the middle, or that was
// given up, may have done what it was to do.
func (e *ended) changed() bool { return !e.reads && e.outcome == pipeline.OK }

func (e *ended) mayHave() bool {
	switch e.outcome {
	case pipeline.NotFound, pipeline.NotAllowed, pipeline.InvalidArguments, pipeline.Asked, pipeline.Busy:
		return false // it did not get to its tool
	}
	return !e.reads
}

// runCalls makes the calls of a round, several at once, and returns their results in the same order. stuck says that the model repeats
// itself. It returns when all calls have ended.
func (r *run) runCalls(ctx context.Context, calls []llm.Call) (results []llm.Result, stuck bool) {
	results = make([]llm.Result, len(calls))
	round, first := make([]*ended, len(calls)), map[string]*ended{}
	var group errgroup.Group
	group.SetLimit(r.engine.options.Limits.Parallel)
	for i, call := range calls {
		key := key(call)
		before := r.made[key]
		switch {
		case i >= r.engine.options.Limits.Calls:
			results[i] = failed(call, fmt.Sprintf("not called: at most %d calls can be made at once. Make the others in the next round", r.engine.options.Limits.Calls))
		case call.Invalid != "":
			results[i] = failed(call, "not called: the arguments are not valid: "+call.Invalid)
		case first[key] != nil:
			round[i] = first[key]
		case before != nil && !before.again:
			before.times++
			stuck = stuck || before.times >= maxRepeats
			results[i] = repeated(call, before.result)
		default:
			round[i] = new(ended)
			first[key] = round[i]
			group.Go(func() error {
				r.runCall(ctx, call, round[i])
				return nil
			})
		}
	}
	_ = group.Wait() // no call fails the others
	for i, call := range calls {
		switch e := round[i]; {
		case e == nil:
		case e.result.CallID == call.ID:
			results[i] = e.result
		default:
			results[i] = repeated(call, e.result)
		}
	}
	r.remember(first)
	return results, stuck
}

// remember keeps what the calls of a round gave. Where one of them may have changed something, also where it failed, what was read before does not
// count any more.
func (r *run) remember(round map[string]*ended) {
	times := map[string]int{}
	for key := range round {
		if before := r.made[key]; before != nil {
			times[key] = before.times
		}
	}
	changed, mayHave := false, false
	for _, e := range round {
		changed, mayHave = changed || e.changed(), mayHave || e.mayHave()
	}
	switch {
	case changed:
		clear(r.made)
	case mayHave: // whoever looks has to see what is there now
		maps.DeleteFunc(r.made, func(_ string, m *made) bool { return m.reads })
	}
	for key, e := range round {
		if changed && !e.changed() || mayHave && e.reads {
			continue // it may have read before the change
		}
		r.made[key] = &made{times[key] + 1, e.result, e.outcome == pipeline.Busy, e.reads}
	}
	r.answer.Calls += len(round)
}

// repeated is the result of a call that was made before.
func repeated(call llm.Call, result llm.Result) llm.Result {
	result.CallID = call.ID
	result.Text = "(You have made this very call before. It was not made again; this is what it gave.)\n" + result.Text
	return result
}

// runCall makes one call.
func (r *run) runCall(ctx context.Context, call llm.Call, e *ended) {
	name := call.Name
	tool := r.byName[name]
	if tool != nil && tool.Spec.Title.In(r.turn.Locale) != "" {
		name = tool.Spec.Title.In(r.turn.Locale)
	}
	shown := ToolCall{ID: call.ID, Name: call.Name, Title: clipped(name), Arguments: call.Arguments}
	r.screen.do(func(s Surface) { s.ToolStarted(shown.ID, shown.Name, shown.Title) })
	outcome, line := r.throughPipeline(ctx, shown, call, &e.result)
	if line == "" {
		line = r.words.outcomes[outcome]
	}
	r.screen.do(func(s Surface) { s.ToolEnded(shown.ID, outcome, line) })
	e.outcome = outcome
	e.reads = tool != nil && tool.Hints().ReadOnlyHint != nil && *tool.Hints().ReadOnlyHint
}

// throughPipeline makes one call, and returns how it ended and a line for people.
func (r *run) throughPipeline(ctx context.Context, shown ToolCall, call llm.Call, result *llm.Result) (outcome pipeline.Outcome, line string) {
	bounded, cancel := context.WithTimeout(ctx, r.patience(call.Name))
	defer cancel()
	limited, clock, stop := callclock.Start(bounded, r.engine.options.Limits.ToolTimeout, context.DeadlineExceeded)
	defer stop()
	permitted := clock.Pause() // while the policy asks
	answer, err := r.engine.options.Call(limited, &pipeline.Call{
		Caller:  r.caller,
		Request: abi.Request{Method: abi.CallTool, Name: call.Name, Arguments: call.Arguments},
		Way:     paused(r.screen.way(shown), clock),
		Permitted: func(context.Context) error {
			permitted()
			return nil
		},
	})
	if err == nil {
		*result = r.result(call, answer.Response)
		return answer.Outcome, short(answer.Response)
	}
	outcome, text := r.failure(ctx, limited, call.Name, err)
	*result = failed(call, text)
	return outcome, ""
}

// paused is the way with a clock that stands still while the person is asked.
func paused(way approval.Way, clock *callclock.Clock) approval.Way {
	if ask := way.Ask; ask != nil {
		way.Ask = func(ctx context.Context, q *approval.Question) (bool, error) {
			defer clock.Pause()()
			return ask(ctx, q)
		}
	}
	if fill := way.Fill; fill != nil {
		way.Fill = func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
			defer clock.Pause()()
			return fill(ctx, q)
		}
	}
	return way
}

// patience is how long a call may take, with the time in which people are asked.
func (r *run) patience(name string) time.Duration {
	o := &r.engine.options
	if tool := r.byName[name]; tool != nil && o.MayAsk != nil && o.MayAsk(r.caller, tool) {
		return o.Limits.ToolTimeout + o.Limits.AskTimeout
	}
	return o.Limits.ToolTimeout
}

// failure is what the model is told of a call that has no result.
func (r *run) failure(ctx, limited context.Context, name string, err error) (pipeline.Outcome, string) {
	var missing *pipeline.NotFoundError
	var denied *pipeline.NotAllowedError
	var invalid *pipeline.InvalidError
	switch {
	case ctx.Err() != nil:
		return pipeline.Canceled, "the user stopped it"
	case limited.Err() != nil:
		return pipeline.Timeout, fmt.Sprintf("%s did not answer within %s. Try something smaller, or tell the user", name, r.engine.options.Limits.ToolTimeout)
	case errors.As(err, &missing):
		if len(missing.Near) > 0 {
			return pipeline.NotFound, fmt.Sprintf("there is no tool %q. Did you mean %s?", label(name), strings.Join(missing.Near, " or "))
		}
		return pipeline.NotFound, fmt.Sprintf("there is no tool %q. Use only the tools that you were given", label(name))
	case errors.As(err, &denied):
		return pipeline.NotAllowed, fmt.Sprintf("%v. Do not try again; tell the user", denied)
	case errors.As(err, &invalid):
		return pipeline.InvalidArguments, invalid.Error()
	}
	r.engine.options.Logger.Error("a tool call failed", "tool", name, "err", err)
	return pipeline.Internal, "it failed inside hako"
}

// failed is the result of a call in the host's own words.
func failed(call llm.Call, text string) llm.Result {
	return llm.Result{CallID: call.ID, Text: text, IsError: true}
}

// key is the same for the same call, whatever the order and the spaces of its arguments. Numbers are compared as they were written: as
// floats, some would be equal that are not.
func key(call llm.Call) string {
	arguments := jsontext.Value(call.Arguments).Clone()
	// What has no such form, because a key is there twice for example, is compared as it is.
	_ = arguments.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return identity.Key(call.Name, string(arguments))
}
