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

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/callclock"
	"github.com/hako-run/hako/pdk/abi"
)

// maxRepeats is the number of identical calls that ends the loop. Repeats below it get the result of the first.
const maxRepeats = 3

// pastCall is an earlier call of this turn.
type pastCall struct {
	times  int
	result llm.Result
	// again reports whether the call never reached its tool and may be repeated.
	again bool
	// reads reports whether the tool is read-only.
	reads bool
}

// roundCall is a call of the current round.
type roundCall struct {
	at      int    // in the round
	id      string // for the Surface
	result  llm.Result
	outcome pipeline.Outcome
	reads   bool // the tool is read-only
}

// changed reports whether the call changed something that other calls may read.
func (e *roundCall) changed() bool { return !e.reads && e.outcome == pipeline.OK }

// mayHaveChanged is like changed, but true as well for a call that failed in its tool or was abandoned.
func (e *roundCall) mayHaveChanged() bool {
	switch e.outcome {
	case pipeline.NotFound, pipeline.NotAllowed, pipeline.InvalidArguments, pipeline.Asked, pipeline.Busy:
		return false // it did not reach its tool
	}
	return !e.reads
}

// runCalls runs the calls of a round in parallel and returns their results in order when all have ended. stuck says
// that the model repeats itself.
func (r *run) runCalls(ctx context.Context, calls []llm.Call) (results []llm.Result, stuck bool) {
	results = make([]llm.Result, len(calls))
	round, first := make([]*roundCall, len(calls)), map[string]*roundCall{}
	var group errgroup.Group
	group.SetLimit(r.engine.options.Limits.Parallel)
	for i, call := range calls {
		key := key(call)
		before := r.made[key]
		switch {
		case i >= r.engine.options.Limits.Calls:
			results[i] = failed(call,
				fmt.Sprintf("not called: at most %d calls can be made at once. Make the others in the next round",
					r.engine.options.Limits.Calls))
		case call.Invalid != "":
			results[i] = failed(call, "not called: the arguments are not valid: "+call.Invalid)
		case first[key] != nil:
			round[i] = first[key]
		case before != nil && !before.again:
			before.times++
			stuck = stuck || before.times >= maxRepeats
			results[i] = repeated(call, before.result)
		default:
			r.shown++
			round[i] = &roundCall{at: i, id: fmt.Sprintf("call_%d", r.shown)}
			first[key] = round[i]
			group.Go(func() error {
				r.runCall(ctx, call, round[i])
				return nil
			})
		}
	}
	_ = group.Wait() // the goroutines return no errors
	for i, call := range calls {
		switch e := round[i]; {
		case e == nil:
		case e.at == i:
			results[i] = e.result
		default:
			results[i] = repeated(call, e.result)
		}
	}
	r.remember(first)
	return results, stuck
}

// remember stores the results of a round for repeated calls. After a call that may have changed something, earlier
// results of read-only tools are dropped.
func (r *run) remember(round map[string]*roundCall) {
	times := map[string]int{}
	for key := range round {
		if before := r.made[key]; before != nil {
			times[key] = before.times
		}
	}
	changed, mayHave := false, false
	for _, e := range round {
		changed, mayHave = changed || e.changed(), mayHave || e.mayHaveChanged()
	}
	switch {
	case changed:
		clear(r.made)
	case mayHave: // later reads must see the current state
		maps.DeleteFunc(r.made, func(_ string, m *pastCall) bool { return m.reads })
	}
	for key, e := range round {
		if changed && !e.changed() || mayHave && e.reads {
			continue // it may have run before the change
		}
		r.made[key] = &pastCall{times[key] + 1, e.result, e.outcome == pipeline.Busy, e.reads}
	}
	r.answer.Calls += len(round)
}

// repeated returns the result of an identical earlier call.
func repeated(call llm.Call, result llm.Result) llm.Result {
	result.CallID = call.ID
	result.Text = "(You have made this very call before. It was not made again; this is what it gave.)\n" + result.Text
	return result
}

// runCall runs one call.
func (r *run) runCall(ctx context.Context, call llm.Call, e *roundCall) {
	name := call.Name
	tool := r.byName[name]
	if tool != nil && tool.Spec.Title.In(r.caller.Locale) != "" {
		name = tool.Spec.Title.In(r.caller.Locale)
	}
	shown := ToolCall{ID: e.id, Name: call.Name, Title: clipped(name), Arguments: call.Arguments}
	r.display.do(func(s Surface) { s.ToolStarted(shown.ID, shown.Name, shown.Title) })
	outcome, line := r.callPipeline(ctx, shown, call, &e.result)
	if line == "" {
		line = r.words.outcomes[outcome]
	}
	r.display.do(func(s Surface) { s.ToolEnded(shown.ID, outcome, line) })
	e.outcome = outcome
	e.reads = tool != nil && tool.Hints().ReadOnlyHint != nil && *tool.Hints().ReadOnlyHint
}

// callPipeline runs one call through the pipeline. It returns the outcome and a line for people.
func (r *run) callPipeline(ctx context.Context, shown ToolCall, call llm.Call,
	result *llm.Result) (outcome pipeline.Outcome, line string) {
	bounded, cancel := context.WithTimeout(ctx, r.callTimeout(call.Name))
	defer cancel()
	limited, permitted, stop := callclock.StartPaused(bounded, r.engine.options.Limits.ToolTimeout)
	defer stop()
	answer, err := r.engine.options.Call(limited, &pipeline.Call{
		Caller:   r.caller,
		Request:  abi.Request{Method: abi.CallTool, Name: call.Name, Arguments: call.Arguments},
		Prompter: r.display.prompter(shown), MaxResult: r.engine.options.Limits.Result,
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

// callTimeout bounds a call, including the time for asking people.
func (r *run) callTimeout(name string) time.Duration {
	o := &r.engine.options
	if tool := r.byName[name]; tool != nil && o.MayAsk != nil && o.MayAsk(r.caller, tool) {
		return o.Limits.ToolTimeout + o.Limits.AskTimeout
	}
	return o.Limits.ToolTimeout
}

// failure returns the outcome and the text for the model of a call without a result.
func (r *run) failure(ctx, limited context.Context, name string, err error) (pipeline.Outcome, string) {
	var missing *pipeline.NotFoundError
	var denied *pipeline.NotAllowedError
	var invalid *pipeline.InvalidError
	switch {
	case ctx.Err() != nil:
		return pipeline.Canceled, "the user stopped it"
	case limited.Err() != nil:
		return pipeline.Timeout,
			fmt.Sprintf("%s did not answer within %s. Try something smaller, or tell the user", name,
				r.engine.options.Limits.ToolTimeout)
	case errors.As(err, &missing):
		if len(missing.Near) > 0 {
			return pipeline.NotFound,
				fmt.Sprintf("there is no tool %q. Did you mean %s?", label(name), strings.Join(missing.Near, " or "))
		}
		return pipeline.NotFound, fmt.Sprintf("there is no tool %q. Use only the tools that you were given",
			label(name))
	case errors.As(err, &denied):
		return pipeline.NotAllowed, fmt.Sprintf("%v. Do not try again; tell the user", denied)
	case errors.As(err, &invalid):
		return pipeline.InvalidArguments, invalid.Error()
	}
	r.engine.options.Logger.Error("a tool call failed", "tool", name, "err", err)
	return pipeline.Internal, "it failed because of an internal error of hako"
}

// failed returns an error result written by the host.
func failed(call llm.Call, text string) llm.Result {
	return llm.Result{CallID: call.ID, Text: text, IsError: true}
}

// key identifies a call regardless of the order and whitespace of its arguments. Numbers are compared as written: as
// floats, different ones may be equal.
func key(call llm.Call) string {
	arguments := jsontext.Value(call.Arguments).Clone()
	// Arguments without a canonical form, such as those with duplicate keys, are compared verbatim.
	_ = arguments.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return identity.Key(call.Name, string(arguments))
}
