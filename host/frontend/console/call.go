package console

import (
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
)

// oneCallJSON is a call with its steps.
type oneCallJSON struct {
	ID string `json:"id"`
	// Running is set while the call runs, Record after its end.
	Running *runningJSON `json:"running,omitempty"`
	Record  *recordJSON  `json:"record,omitempty"`
	// Text and Remedy explain the failure.
	Text   string `json:"text,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Kept reports whether Steps and Log were kept. They are in the memory of the process that ran the call, for a
	// while.
	Kept         bool       `json:"kept"`
	Steps        []stepJSON `json:"steps"`
	DroppedSteps int        `json:"droppedSteps,omitempty"`
	Log          []lineJSON `json:"log"`
	DroppedLines int        `json:"droppedLines,omitempty"`
}

// stepJSON is a step of a call. Start is the time since the start of the call, in milliseconds.
type stepJSON struct {
	Name       string         `json:"name"`
	Depth      int            `json:"depth"`
	StartMS    float64        `json:"startMs"`
	DurationMS float64        `json:"durationMs"`
	Running    bool           `json:"running,omitempty"`
	Failure    string         `json:"failure,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// lineJSON is a log line of a guest.
type lineJSON struct {
	TimeMS float64 `json:"timeMs"`
	Level  string  `json:"level"`
	Text   string  `json:"text"`
}

// oneCall returns a call that runs, one that this process has kept, or one from the audit log.
func (c *Console) oneCall(q *request) (any, error) {
	id, t := q.PathValue("id"), c.options.Traffic
	running, ended := t.find(id)
	if running != nil {
		answer := &oneCallJSON{ID: id, Running: newRunning(running)}
		answer.show(running.Recording, time.Since(running.Started))
		return answer, nil
	}
	if ended != nil {
		answer := &oneCallJSON{ID: id, Record: recordOf(&ended.Record)}
		answer.explain(newCallEvent(&ended.Record), q.language)
		answer.show(ended.recording, ended.Duration)
		return answer, nil
	}
	other, err := c.other(q.Context(), id)
	if err != nil {
		return nil, err
	}
	if other != nil {
		return &oneCallJSON{ID: id, Running: other, Steps: []stepJSON{}, Log: []lineJSON{}}, nil
	}
	entry, err := c.auditedCall(q, id)
	if err != nil {
		return nil, err
	}
	answer := &oneCallJSON{ID: id, Record: newRecord(entry), Steps: []stepJSON{}, Log: []lineJSON{}}
	answer.explain(&callEvent{callJSON: callJSON{Tool: entry.Target.Name, Plugin: entry.Target.Plugin,
		User: entry.Subject.User, Frontend: entry.Subject.Frontend}, Outcome: entry.Outcome}, q.language)
	return answer, nil
}

// find returns the call with the ID, which runs or has ended. Both are nil if it is not known here.
func (t *Traffic) find(id string) (*pipeline.Running, *finishedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, call := range t.finished.calls {
		if call.ID == id {
			return nil, &call
		}
	}
	for _, f := range t.failures {
		if f.example.ID == id {
			call := f.example
			return nil, &call
		}
	}
	return t.running[id], nil
}

// auditedCall looks for the call's record in the audit log.
func (c *Console) auditedCall(q *request, id string) (*audit.Entry, error) {
	if c.options.Journal == nil {
		return nil, faultNoCall
	}
	leave, err := c.queue(q)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := c.options.Journal.Last(q.Context(), &audit.Query{Call: id}, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, faultNoCall
	}
	return found[0], nil
}

var faultNoCall = &fault{code: codeNotFound, text: manifest.Text{
	"en": "This call is unknown.", "ja": "この呼び出しの情報はありません。",
}, remedy: manifest.Text{
	"en": "It may have begun at another replica just now, its record may have expired, or the audit log is off.",
	"ja": "別のレプリカで始まったばかりか、記録の保存期間が過ぎたか、監査ログが無効です。",
}}

// explain adds the advice for a failure.
func (a *oneCallJSON) explain(e *callEvent, language string) {
	if advice, ok := advices[pipeline.Outcome(e.Outcome)]; ok {
		a.Text, a.Remedy = e.fill(advice.text.In(language)), e.fill(advice.remedy.In(language))
	}
}

// show adds the steps and the log lines of a recording, which may be nil. Steps that have not ended last until end.
func (a *oneCallJSON) show(recording *trace.Recording, end time.Duration) {
	s := recording.Snapshot()
	a.Kept, a.Steps, a.Log = recording != nil, []stepJSON{}, []lineJSON{}
	a.DroppedSteps, a.DroppedLines = s.DroppedSteps, s.DroppedLines
	for _, step := range s.Steps {
		shown := stepJSON{Name: step.Name, StartMS: milliseconds(step.Start), DurationMS: milliseconds(step.Duration),
			Running: step.Running, Failure: step.Failure}
		if step.Parent >= 0 {
			shown.Depth = a.Steps[step.Parent].Depth + 1
		}
		if step.Running {
			shown.DurationMS = max(0, milliseconds(end-step.Start))
		}
		if len(step.Attributes) > 0 {
			shown.Attributes = map[string]any{}
		}
		for _, attribute := range step.Attributes {
			shown.Attributes[string(attribute.Key)] = attribute.Value
		}
		a.Steps = append(a.Steps, shown)
	}
	for _, line := range s.Lines {
		a.Log = append(a.Log, lineJSON{milliseconds(line.Time), strings.ToLower(line.Level.String()), line.Text})
	}
}
