package console_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/pipeline"
)

// ended is a call that has ended.
func ended(tool string, outcome pipeline.Outcome, took time.Duration) pipeline.Record {
	return pipeline.Record{Method: "tools/call", Name: tool, Source: "plugin", Outcome: outcome, Duration: took}
}

type seriesJSON struct {
	Step   int
	From   time.Time
	Points [][5]*float64
}

func TestSeries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	for range 100 {
		w.traffic.CallEnded(ended("greet", pipeline.OK, 3*time.Millisecond))
	}
	w.clock.add(10 * time.Second)
	for range 10 {
		w.traffic.CallEnded(ended("greet", pipeline.Timeout, 30*time.Second))
		w.traffic.CallEnded(ended("other", pipeline.Canceled, time.Second))
	}
	var s seriesJSON
	b.get("series?tool=greet").into(t, &s)
	if len(s.Points) != 360 || s.Step != 10 || !s.From.Equal(w.clock.Now().Add(10*time.Second-time.Hour)) {
		t.Fatalf("%d points from %s", len(s.Points), s.From)
	}
	before, now := s.Points[358], s.Points[359]
	if *before[0] != 100 || *before[1] != 0 || *before[2] < 2 || *before[4] > 4 || *now[0] != 10 || *now[1] != 10 ||
		*now[2] < 16_000 || *now[4] > 33_000 || s.Points[0][2] != nil {
		t.Errorf("points = %v %v", before, now)
	}
	b.get("series").into(t, &s)
	if len(s.Points) != 360 || *s.Points[359][0] != 20 || *s.Points[359][1] != 10 {
		t.Errorf("all: %d points, %v", len(s.Points), s.Points[len(s.Points)-1])
	}
	var top struct {
		Items []struct {
			Tool            string
			Calls, Failures int
			Spark           []int
		}
	}
	b.get("series/top?by=failures&limit=1").into(t, &top)
	if len(top.Items) != 1 || top.Items[0].Tool != "greet" || top.Items[0].Calls != 110 ||
		top.Items[0].Failures != 10 || len(top.Items[0].Spark) != 30 {
		t.Errorf("top = %+v", top)
	}
	var overview struct {
		Calls struct{ LastMinute, FailedLastMinute int }
	}
	if b.get("overview").into(t, &overview); overview.Calls.LastMinute != 120 || overview.Calls.FailedLastMinute != 10 {
		t.Errorf("overview = %+v", overview)
	}
	w.clock.add(time.Hour)
	b = w.as(console.Viewer)
	if b.get("series/top").into(t, &top); len(top.Items) != 0 {
		t.Errorf("an hour later: %+v", top)
	}
	for _, query := range []string{"series?span=year", "series/top?span=x", "series/top?by=name", "series/top?limit=1000"} {
		if got := b.get(query); got.code() != "invalid" {
			t.Errorf("%s: %d", query, got.status)
		}
	}
}

// TestFlood: whatever names there are, what is kept of them is bounded.
func TestFlood(t *testing.T) {
	t.Parallel()
	c := newClock()
	traffic := console.NewTrafficAt(c.Now)
	for i := range 5_000 {
		if i%100 == 0 {
			c.add(10 * time.Second)
		}
		traffic.CallEnded(ended(fmt.Sprint("tool", i), pipeline.Trap, time.Millisecond))
		traffic.CallEnded(ended("", pipeline.NotFound, time.Millisecond)) // no name of the catalog's
		traffic.CallEnded(ended("busy", pipeline.OK, time.Millisecond))
	}
	if series, failures := traffic.Sizes(); series != console.MaxSeries || failures != console.MaxFailures {
		t.Errorf("%d series and %d failures are kept", series, failures)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	began := w.clock.Now().UTC()
	fail := func(tool string, outcome pipeline.Outcome, change func(*pipeline.Record)) {
		w.clock.add(time.Second)
		r := ended(tool, outcome, time.Second)
		r.ID, r.Started = fmt.Sprintf("call_%s_%s", tool, w.clock.Now().Format("150405")), w.clock.Now()
		if change != nil {
			change(&r)
		}
		w.traffic.CallEnded(r)
	}
	for range 300 {
		fail("greet", pipeline.ToolError, nil)
		fail("fine", pipeline.OK, nil)
	}
	fail("greet", pipeline.Trap, func(r *pipeline.Record) { r.Error = "plugin p stopped: unreachable" })
	for _, rule := range []string{"one", "two", "one"} {
		fail("greet", pipeline.NotAllowed, func(r *pipeline.Record) { r.Rule = rule })
	}
	fail("greet", pipeline.Timeout, nil)
	fail("greet", pipeline.Stopped, nil)
	var list struct {
		Items []struct {
			Tool, Text, Remedy, Outcome, Side, Detail, Error string
			Count                                            int
			First, Last                                      time.Time
			Example                                          struct{ ID string }
		}
	}
	b.get("errors?lang=ja").into(t, &list)
	var got []string
	for _, f := range list.Items {
		got = append(got, strings.TrimSpace(fmt.Sprintln(f.Side, f.Outcome, f.Detail, f.Count, f.Error)))
	}
	want := []string{"limit timeout  1", "policy not_allowed one 2", "policy not_allowed two 1",
		"plugin trap  1 plugin p stopped: unreachable", "tool tool_error  300"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if f := list.Items[0]; f.Text != "呼び出しが時間の上限を超えました。" || !strings.Contains(f.Remedy, "plugin.plugin.limits.time") {
		t.Errorf("%+v", f)
	}
	last := list.Items[4]
	if !last.First.Equal(began.Add(time.Second)) || !last.Last.Equal(began.Add(599*time.Second)) {
		t.Errorf("from %s to %s", last.First, last.Last)
	}
	if a := b.get("calls/" + last.Example.ID); a.status != http.StatusOK ||
		!strings.Contains(a.body, `"outcome":"tool_error"`) {
		t.Errorf("the example: %d %s", a.status, a.body)
	}
	for _, outcome := range pipeline.Outcomes {
		explained := console.Failed(outcome) || outcome == pipeline.NotAllowed
		if explained != slices.Contains(console.Advised(), string(outcome)) {
			t.Errorf("%s: a failure without advice, or advice for none", outcome)
		}
	}
	var overview struct {
		Calls struct{ FailedLastMinute int }
	}
	if b.get("overview").into(t, &overview); overview.Calls.FailedLastMinute != 27 { // refusals are no failures
		t.Errorf("%d failed", overview.Calls.FailedLastMinute)
	}
}

// TestSlowCall: no percentile is longer than the longest call.
func TestSlowCall(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{100 * time.Microsecond, 520 * time.Millisecond, 1100 * time.Millisecond,
		5 * time.Minute} {
		w := newWorld(t, nil)
		w.traffic.CallEnded(ended("greet", pipeline.OK, took))
		var overview struct {
			Calls struct{ P50Ms, P95Ms, P99Ms float64 }
		}
		w.as(console.Viewer).get("overview").into(t, &overview)
		c, want := overview.Calls, took.Seconds()*1000
		if c.P99Ms > want || c.P95Ms > c.P99Ms || c.P50Ms > c.P95Ms || c.P95Ms < want/2 {
			t.Errorf("one call of %v: %+v", took, c)
		}
	}
}

func BenchmarkTraffic(b *testing.B) {
	traffic := console.NewTraffic()
	record := ended("greet", pipeline.OK, time.Millisecond)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			traffic.CallStarted(&pipeline.Running{Method: "tools/call"})
			traffic.CallEnded(record)
		}
	})
}
