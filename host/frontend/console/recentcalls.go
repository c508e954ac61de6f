package console

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
)

const (
	// maxRunning bounds the running calls that are listed. Further ones are only counted.
	maxRunning = 500
	// maxFinished bounds the calls that are kept after their end.
	maxFinished = 200
	// maxKeptArguments bounds the arguments of a kept call, in bytes. Longer ones are in the audit log only.
	maxKeptArguments = 8 << 10
)

// finishedCall is a call that has ended.
type finishedCall struct {
	pipeline.Record
	recording *trace.Recording // nil if the call was not listed while it ran
}

// finished is a ring of the last calls that ended.
type finished struct {
	calls []finishedCall
	next  int
}

func (f *finished) add(call *finishedCall) {
	if len(f.calls) < maxFinished {
		f.calls = append(f.calls, *call)
		return
	}
	f.calls[f.next] = *call
	f.next = (f.next + 1) % maxFinished
}

// list returns the calls, newest first.
func (f *finished) list() []finishedCall {
	list := make([]finishedCall, 0, len(f.calls))
	for i := range f.calls {
		list = append(list, f.calls[(f.next+len(f.calls)-1-i)%len(f.calls)])
	}
	return list
}

// start adds a running call.
func (t *Traffic) start(r *pipeline.Running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.running) < maxRunning {
		t.running[r.ID] = r
	}
}

// end moves a call from those that run to those that ended. The caller holds mu.
func (t *Traffic) end(r *pipeline.Record) {
	call := finishedCall{Record: *r}
	call.Arguments = keptArguments(r.Arguments)
	if running := t.running[r.ID]; running != nil {
		call.recording = running.Recording
		delete(t.running, r.ID)
	}
	t.finished.add(&call)
	if _, explained := advices[r.Outcome]; explained {
		t.addFailure(&call)
	}
}

// recordOf returns the record of a call in the form of those from the audit log.
func recordOf(r *pipeline.Record) *recordJSON {
	c := &r.Caller
	record := &recordJSON{
		Time: r.Started.UTC(), Type: audit.Type(r.Method), Plugin: r.Source, Name: r.Name, Outcome: string(r.Outcome),
		DurationMS: milliseconds(r.Duration), Decision: string(r.Action), Rule: r.Rule, Error: r.Error, Call: r.ID,
		Who: whoJSON{User: c.User, Tenant: c.Tenant, Token: c.Token, Frontend: c.Frontend,
			Session: c.Session, Address: c.Address, Client: clientOf(c.Client, c.ClientVersion)},
		RequestID: c.RequestID, TraceID: r.TraceID, InputBytes: r.Input, OutputBytes: r.Output,
		Fields: r.Arguments, Summary: r.Summary,
	}
	if n := len(r.Answers); n > 0 {
		record.Approval = &audit.Approval{ID: r.Question, By: r.Approver, Answer: r.Answers[n-1].Outcome}
	}
	for _, f := range r.Findings {
		record.Findings = append(record.Findings, audit.Finding{Rule: f.Rule, Place: string(f.Place),
			Action: string(f.Action)})
	}
	return record
}

// keptArguments returns the arguments unless they are too large to be kept.
func keptArguments(arguments map[string]json.RawMessage) map[string]json.RawMessage {
	size := 0
	for name, value := range arguments {
		size += len(name) + len(value)
	}
	if size > maxKeptArguments {
		return nil
	}
	return arguments
}

// runningJSON is a running call.
type runningJSON struct {
	callJSON
	Client string `json:"client,omitempty"`
	// ElapsedMS is the time since the start, by the host's clock.
	ElapsedMS float64                    `json:"elapsedMs"`
	Arguments map[string]json.RawMessage `json:"arguments,omitempty"`
	// Question is the ID of the question that the call waits for.
	Question string `json:"question,omitempty"`
	// Step is the step that the call is in, Progress the tool's latest report.
	Step     string        `json:"step,omitempty"`
	Progress *progressJSON `json:"progress,omitempty"`
	// Replica is the process that runs the call, if there are others.
	Replica string `json:"replica,omitempty"`
}

// progressJSON is a tool's report. Share is from 0 to 1, nil without a known total.
type progressJSON struct {
	Share   *float64 `json:"share,omitempty"`
	Message string   `json:"message,omitempty"`
}

func newRunning(r *pipeline.Running) *runningJSON {
	state := r.State()
	running := &runningJSON{
		callJSON: callJSON{r.ID, r.Started.UTC(), r.Method, state.Name, state.Source, r.Caller.Frontend, r.Caller.User,
			r.Caller.Tenant, r.TraceID, r.Parent},
		Client:    clientOf(r.Caller.Client, r.Caller.ClientVersion),
		ElapsedMS: milliseconds(time.Since(r.Started)), Arguments: keptArguments(state.Arguments),
		Question: state.Question, Step: r.Recording.Current(),
	}
	if p := state.Progress; p != nil {
		running.Progress = &progressJSON{Message: p.Message}
		if share := p.Progress / p.Total; p.Total > 0 && share >= 0 && share <= 1 {
			running.Progress.Share = &share
		}
	}
	return running
}

// runningListJSON has running calls, oldest first.
type runningListJSON struct {
	Items []*runningJSON `json:"items"`
	// More is the number of running calls that are not in Items.
	More int `json:"more,omitempty"`
	// Replica is the process that answers, if there are others.
	Replica string `json:"replica,omitempty"`
}

// runningCalls lists the calls here and those of other replicas that have run for a while.
func (c *Console) runningCalls(q *request) (any, error) {
	replicas, err := c.options.Store.Replicas(q.Context())
	if err != nil {
		return nil, err
	}
	answer := &runningListJSON{Items: []*runningJSON{}, Replica: c.ownName(replicas)}
	list := c.options.Traffic.runningCalls()
	for _, r := range list {
		call := newRunning(r)
		call.Replica = answer.Replica
		answer.Items = append(answer.Items, call)
	}
	answer.More = max(0, int(c.options.Traffic.inFlight.Load())-len(list))
	if answer.Replica != "" {
		others, more, err := c.others(q.Context(), replicas)
		if err != nil {
			return nil, err
		}
		answer.Items, answer.More = append(answer.Items, others...), answer.More+more
		slices.SortStableFunc(answer.Items, func(a, b *runningJSON) int { return a.Time.Compare(b.Time) })
	}
	return answer, nil
}

// runningCalls returns the running calls, oldest first.
func (t *Traffic) runningCalls() []*pipeline.Running {
	t.mu.Lock()
	list := slices.Collect(maps.Values(t.running))
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b *pipeline.Running) int { return a.Started.Compare(b.Started) })
	return list
}

// runningCall returns the running call with the ID, or nil.
func (t *Traffic) runningCall(id string) *pipeline.Running {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[id]
}

func (c *Console) finishedCalls(*request) (any, error) {
	t := c.options.Traffic
	t.mu.Lock()
	list := t.finished.list()
	t.mu.Unlock()
	items := []*callEvent{}
	for i := range list {
		items = append(items, newCallEvent(&list[i].Record))
	}
	return listed(items), nil
}

var faultNotRunning = &fault{code: codeConflict, text: manifest.Text{
	"en": "This call is no longer running.", "ja": "この呼び出しはすでに終了しています。",
}}

// stopCall stops a running call, here or at another replica. It does not wait for its end.
func (c *Console) stopCall(q *request) (any, error) {
	if err := q.decode(new(struct{})); err != nil {
		return nil, err
	}
	id := q.PathValue("id")
	stop := func() error { return c.requestStop(q.lasting(), id) }
	var call *runningJSON
	if running := c.options.Traffic.runningCall(id); running != nil {
		call = newRunning(running)
		stop = func() error {
			running.Stop()
			return nil
		}
	} else if other, err := c.other(q.Context(), id); err != nil {
		return nil, err
	} else if call = other; call == nil {
		return nil, faultNotRunning
	}
	return struct{}{}, c.audited(q, &audit.Operation{
		Action: "call.stop", Subject: audit.Subject{Tenant: call.Tenant},
		Target: audit.Target{Plugin: call.Plugin, Name: call.Tool},
		Detail: map[string]string{"call": id, "caller": call.User},
	}, stop)
}
