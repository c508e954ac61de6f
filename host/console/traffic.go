package console

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/pipeline"
)

// maxFailures bounds the remembered failures.
const maxFailures = 200

// Traffic has the calls of this process: counts of the last hour and those to store, failures, and the open streams. It
// is an observer of a host. It is safe for concurrent use.
type Traffic struct {
	now      func() time.Time
	hub      *hub
	last     atomic.Uint64
	inFlight atomic.Int64

	// mu guards the fields below.
	mu       sync.Mutex
	all      *series
	tools    map[string]*series
	late     []tally      // of past steps, not stored yet
	failures []*callEvent // a ring of the last maxFailures
	next     int
}

var _ pipeline.Observer = (*Traffic)(nil)

// NewTraffic returns a Traffic without calls.
func NewTraffic() *Traffic { return newTraffic(time.Now) }

func newTraffic(now func() time.Time) *Traffic {
	return &Traffic{now: now, hub: &hub{streams: map[*stream]bool{}}, all: new(series), tools: map[string]*series{}}
}

// callEvent is a call as people see it. Names are the catalog's. User, tenant and rule are determined by the host, not
// by the client.
type callEvent struct {
	ID          uint64    `json:"id"`
	Time        time.Time `json:"time"`
	Method      string    `json:"method"`
	Tool        string    `json:"tool"`
	Plugin      string    `json:"plugin"`
	Frontend    string    `json:"frontend"`
	User        string    `json:"user"`
	Tenant      string    `json:"tenant"`
	Outcome     string    `json:"outcome"`
	Failed      bool      `json:"failed"`
	DurationMS  float64   `json:"durationMs"`
	InputBytes  int       `json:"inputBytes"`
	OutputBytes int       `json:"outputBytes"`
	Decision    string    `json:"decision,omitempty"`
	Rule        string    `json:"rule,omitempty"`
	TraceID     string    `json:"traceId,omitempty"`

	quota string
}

// CallStarted counts the start of a call.
func (t *Traffic) CallStarted(string) { t.inFlight.Add(1) }

// CallEnded counts the end of a call and notifies the streams.
func (t *Traffic) CallEnded(r pipeline.Record) {
	t.inFlight.Add(-1)
	id := t.last.Add(1)
	t.count(&r)
	if fails := failed(r.Outcome); fails || t.hub.count.Load() > 0 {
		event := newCallEvent(id, &r)
		if fails {
			t.remember(event)
		}
		t.hub.call(event)
	}
}

func newCallEvent(id uint64, r *pipeline.Record) *callEvent {
	return &callEvent{
		ID: id, Time: r.Started.UTC(), Method: r.Method, Tool: r.Name, Plugin: r.Source, Frontend: r.Caller.Frontend,
		User: r.Caller.User, Tenant: r.Caller.Tenant,
		Outcome: string(r.Outcome), Failed: failed(r.Outcome), DurationMS: milliseconds(r.Duration),
		InputBytes: r.Input, OutputBytes: r.Output,
		Decision: string(r.Action), Rule: r.Rule, TraceID: r.TraceID, quota: r.Quota,
	}
}

// failed reports whether a call failed for its caller. A call that waits for people or was canceled has not failed.
func failed(o pipeline.Outcome) bool {
	return o != pipeline.OK && o != pipeline.Asked && o != pipeline.Canceled
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t *Traffic) count(r *pipeline.Record) {
	now, bucket, fails := t.now(), bucketOf(r.Active()), failed(r.Outcome)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.add(now, bucket, fails)
	t.tally("", t.all, now, bucket, fails)
	if r.Name != "" {
		s := t.seriesOf(r)
		s.add(now, bucket, fails)
		t.tally(r.Name, s, now, bucket, fails)
	}
}

// remember adds a failure, which replaces the oldest one beyond maxFailures.
func (t *Traffic) remember(event *callEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failures) < maxFailures {
		t.failures = append(t.failures, event)
		return
	}
	t.failures[t.next] = event
	t.next = (t.next + 1) % maxFailures
}

// maxSeries bounds the names with their own series, which take at most 38 MB. A further name replaces the one that was
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

// failed returns the failures, newest first.
func (t *Traffic) failed() []*callEvent {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*callEvent, 0, len(t.failures))
	for i := range t.failures {
		list = append(list, t.failures[(t.next+len(t.failures)-1-i)%len(t.failures)])
	}
	return list
}
