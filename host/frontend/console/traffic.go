package console

import (
	"encoding/json"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/pipeline"
)

// Traffic has the calls of this process: counts of the last hour and those to store, the calls that run, the last ones
// that ended, failures by cause, and the open streams. It is an observer of a host. It is safe for concurrent use.
type Traffic struct {
	now      func() time.Time
	hub      *hub
	inFlight atomic.Int64

	// mu guards the fields below.
	mu       sync.Mutex
	all      *series
	tools    map[string]*series
	rules    map[string]int // decisions by rule
	late     []tally        // of past steps, not stored yet
	running  map[string]*pipeline.Running
	finished finished
	failures map[failureKey]*failure
}

var _ pipeline.Observer = (*Traffic)(nil)

// NewTraffic returns a Traffic without calls.
func NewTraffic() *Traffic { return newTraffic(time.Now) }

func newTraffic(now func() time.Time) *Traffic {
	return &Traffic{now: now, hub: &hub{streams: map[*stream]bool{}}, all: new(series), tools: map[string]*series{},
		rules:   map[string]int{},
		running: map[string]*pipeline.Running{}, failures: map[failureKey]*failure{}}
}

// callJSON has what is known of a call while it runs and after its end. Names are the catalog's. User and tenant are
// determined by the host, not by the client.
type callJSON struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	Method   string    `json:"method"`
	Tool     string    `json:"tool"`
	Plugin   string    `json:"plugin"`
	Frontend string    `json:"frontend"`
	User     string    `json:"user"`
	Tenant   string    `json:"tenant"`
	TraceID  string    `json:"traceId,omitempty"`
	// Parent is the ID of the call whose tool made this one.
	Parent string `json:"parent,omitempty"`
}

// callEvent is a call that has ended.
type callEvent struct {
	callJSON
	Outcome     string  `json:"outcome"`
	Failed      bool    `json:"failed"`
	DurationMS  float64 `json:"durationMs"`
	InputBytes  int     `json:"inputBytes"`
	OutputBytes int     `json:"outputBytes"`
	Decision    string  `json:"decision,omitempty"`
	Rule        string  `json:"rule,omitempty"`
	// Arguments and Text, the beginning of the result, are there if the operator wants them recorded (audit.fields).
	Arguments map[string]json.RawMessage `json:"arguments,omitempty"`
	Text      string                     `json:"text,omitempty"`

	quota string
}

// CallStarted adds a call to those that run.
func (t *Traffic) CallStarted(r *pipeline.Running) {
	t.inFlight.Add(1)
	t.start(r)
	t.hub.each(func(s *stream) { s.started.Store(true) })
}

// CallEnded counts the end of a call, keeps the call for a while and notifies the streams.
func (t *Traffic) CallEnded(r pipeline.Record) {
	t.inFlight.Add(-1)
	t.count(&r)
	if t.hub.count.Load() > 0 {
		t.hub.call(newCallEvent(&r))
	}
}

func newCallEvent(r *pipeline.Record) *callEvent {
	event := &callEvent{
		callJSON: callJSON{r.ID, r.Started.UTC(), r.Method, r.Name, r.Source, r.Caller.Frontend, r.Caller.User,
			r.Caller.Tenant, r.TraceID, r.Parent},
		Outcome: string(r.Outcome), Failed: failed(r.Outcome), DurationMS: milliseconds(r.Duration),
		InputBytes: r.Input, OutputBytes: r.Output,
		Decision: string(r.Action), Rule: r.Rule, Arguments: keptArguments(r.Arguments),
		quota: r.Quota,
	}
	if r.Summary != nil {
		event.Text = r.Summary.Text
	}
	return event
}

// failed reports whether a call failed. A call that waits for people, that the policy or a person refused, or that its
// caller or an operator ended, has not failed: it ended as somebody wanted it.
func failed(o pipeline.Outcome) bool {
	switch o {
	case pipeline.OK, pipeline.Asked, pipeline.NotAllowed, pipeline.Canceled, pipeline.Stopped:
		return false
	}
	return true
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// count counts a call that has ended, and keeps it for a while.
func (t *Traffic) count(r *pipeline.Record) {
	now, took, fails := t.now(), r.Active(), failed(r.Outcome)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.add(now, took, fails)
	t.tally("", t.all, now, took, fails)
	if _, known := t.rules[r.Rule]; r.Rule != "" && (known || len(t.rules) < maxRules) {
		t.rules[r.Rule]++
	}
	if r.Name != "" {
		s := t.seriesOf(r)
		s.add(now, took, fails)
		t.tally(r.Name, s, now, took, fails)
	}
	t.end(r)
}

// maxRules bounds the rules whose decisions are counted. Rules come and go with the policy.
const maxRules = 20_000

// decisions returns how often each rule has decided in this process.
func (t *Traffic) decisions() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.rules)
}

// maxSeries bounds the names with their own series, which take at most 44 MB. A further name replaces the one that was
// called least recently.
const maxSeries = 1000

// seriesOf returns the series of a name. Names are the catalog's, so clients cannot create series. The caller holds mu.
func (t *Traffic) seriesOf(r *pipeline.Record) *series {
	s, ok := t.tools[r.Name]
	if !ok {
		if len(t.tools) >= maxSeries {
			t.forget()
		}
		s = new(series)
		t.tools[r.Name] = s
	}
	s.plugin = r.Source
	return s
}

// forget removes the series with the oldest last call.
func (t *Traffic) forget() {
	oldest, last := "", int64(math.MaxInt64)
	for name, s := range t.tools {
		if s.last < last {
			oldest, last = name, s.last
		}
	}
	for i := range t.tools[oldest].tallies {
		t.late = t.tools[oldest].tallies[i].appendFresh(t.late)
	}
	delete(t.tools, oldest)
}
