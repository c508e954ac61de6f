package metrics

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

func scraped(m *Metrics) string {
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	return recorder.Body.String()
}

func (m *Metrics) call(plugin, name string) {
	m.CallStarted(&pipeline.Running{Method: abi.CallTool})
	m.CallEnded(pipeline.Record{Method: abi.CallTool, Name: name, Source: plugin, Outcome: pipeline.OK,
		Duration: time.Second, Caller: pipeline.Caller{
			Frontend: pipeline.FrontendHTTP, Tenant: "tenant of " + name, User: "user of " + name, Session: name,
			Client: name, Address: name,
		}})
}

// TestGoneSeries takes plugins and tools away: their series go a while later, so that the last values are scraped, and
// only theirs.
func TestGoneSeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New("")
		all := map[offered]bool{{"a", ""}: true, {"a", "one"}: true, {"a", "two"}: true, {"b", ""}: true,
			{"b", "three"}: true}
		m.offers = func() map[offered]bool { return all }
		for _, call := range []offered{{"a", "one"}, {"a", "two"}, {"b", "three"}, {"", ""}} {
			m.call(call.plugin, call.name)
			m.InstanceClosed(call.plugin, "idle")
			m.CallQueued(call.plugin, 0)
			m.RequestEnded(call.plugin, httpbroker.Observation{Rule: "r"})
		}
		scraped(m)
		delete(all, offered{"a", "two"})
		delete(all, offered{"b", ""})
		delete(all, offered{"b", "three"})
		if text := scraped(m); !strings.Contains(text, `name="three"`) || !strings.Contains(text, `name="two"`) {
			t.Error("series are gone before their last values were scraped")
		}
		time.Sleep(retention)
		text := scraped(m)
		for _, gone := range []string{`name="two"`, `name="three"`, `plugin="b"`} {
			if strings.Contains(text, gone) {
				t.Errorf("there is %s", gone)
			}
		}
		for _, there := range []string{`name="one"`,
			`hako_http_requests_total{outcome="other",permission="r",plugin="a"`,
			`name="",outcome="ok",plugin=""`} {
			if !strings.Contains(text, there) {
				t.Errorf("there is no %s in\n%s", there, text)
			}
		}
		all[offered{"b", ""}], all[offered{"b", "three"}] = true, true
		m.call("b", "three")
		m.CallQueued("b", 0)
		time.Sleep(2 * retention)
		text = scraped(m)
		for _, back := range []string{`name="three"`, `hako_sandbox_queue_seconds_count{plugin="b"} 1`} {
			if !strings.Contains(text, back) {
				t.Errorf("what has come back has no %s", back)
			}
		}
	})
}

// TestLabelFlood calls tens of thousands of names, from as many tenants, users and addresses: the series stay bounded.
func TestLabelFlood(t *testing.T) {
	t.Parallel()
	m := New("")
	for i := range 3 * maxNames {
		m.call("upstream", fmt.Sprint("tool ", i))
	}
	for i := range 3 * maxNames { // names and hosts that nobody offers or allows
		m.CallEnded(pipeline.Record{Method: fmt.Sprint("method ", i), Outcome: pipeline.NotFound,
			Caller: pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: fmt.Sprint("user of ", i)}})
		m.RequestEnded("weather", httpbroker.Observation{Code: abi.CodeNotGranted})
	}
	text := scraped(m)
	if n := strings.Count(text, "hako_calls_total{"); n != maxNames+2 {
		t.Errorf("%d series, want %d", n, maxNames+2)
	}
	if n := strings.Count(text, "hako_http_requests_total{"); n != 1 {
		t.Errorf("%d series of requests, want 1", n)
	}
	if want := fmt.Sprintf(`name="other",outcome="ok",plugin="upstream"} %d`, 2*maxNames); !strings.Contains(text, want) {
		t.Errorf("no %s", want)
	}
	for _, secret := range []string{"tenant of", "user of"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is a label", secret)
		}
	}
}

// TestExemplars shows the trace of a slow call, to who accepts OpenMetrics.
func TestExemplars(t *testing.T) {
	t.Parallel()
	m := New("")
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	m.CallStarted(&pipeline.Running{Method: abi.CallTool})
	m.CallEnded(pipeline.Record{Method: abi.CallTool, Outcome: pipeline.OK, Duration: time.Second, TraceID: trace})
	m.RequestEnded("weather", httpbroker.Observation{Rule: "jma", Duration: time.Second, TraceID: trace})
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, request)
	text := recorder.Body.String()
	for _, name := range []string{"hako_call_duration_seconds_bucket", "hako_http_request_duration_seconds_bucket"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, name) && strings.Contains(line, `# {trace_id="`+trace+`"} 1.0`)
		}
		if !found {
			t.Errorf("%s has no exemplar", name)
		}
	}
	if !strings.HasSuffix(text, "# EOF\n") || strings.Contains(scraped(m), trace) {
		t.Error("exemplars are where they do not belong")
	}
}

// TestExemplarsPerScrape shows that every bucket has the trace of its first call since a scrape, however many quick
// calls there are beside a slow one, and that calls without a trace change nothing.
func TestExemplarsPerScrape(t *testing.T) {
	t.Parallel()
	m := New("")
	call := func(name string, took time.Duration, trace string) {
		m.CallEnded(pipeline.Record{Method: abi.CallTool, Name: name, Source: "a", Outcome: pipeline.OK,
			Duration: took, TraceID: trace})
	}
	exemplars := func() []string {
		request := httptest.NewRequest("GET", "/metrics", nil)
		request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		recorder := httptest.NewRecorder()
		m.Handler().ServeHTTP(recorder, request)
		var traces []string
		for _, match := range regexp.MustCompile(`trace_id="(\w+)"`).FindAllStringSubmatch(recorder.Body.String(), -1) {
			traces = append(traces, match[1])
		}
		return traces
	}
	for _, round := range []string{"first", "second"} {
		call("one", time.Millisecond, round)
		call("one", time.Millisecond, "later")
		call("one", time.Minute, round+"slow")
		call("one", time.Hour, round+"slowest")
		call("one", time.Hour, "")
		if got, want := exemplars(), []string{round, round + "slow", round + "slowest"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestScrapeBesideCalls scrapes while calls are counted and plugins come and go: nothing that stays on offer loses a
// call.
func TestScrapeBesideCalls(t *testing.T) {
	t.Parallel()
	m := New("")
	m.offers = func() map[offered]bool { return map[offered]bool{{"a", ""}: true, {"a", "one"}: true} }
	const callers, calls = 8, 500
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range calls {
				m.call("a", "one")
				m.CallQueued("a", 0)
				m.call("gone", fmt.Sprint(caller, i))
			}
		})
	}
	for range 50 {
		m.sweep(time.Now().Add(2 * retention))
		m.sweep(time.Now().Add(4 * retention))
	}
	group.Wait()
	text := scraped(m)
	for _, want := range []string{
		fmt.Sprintf(`hako_calls_total{frontend="mcp-http",method="tools/call",name="one",outcome="ok",plugin="a"} %d`,
			callers*calls),
		fmt.Sprintf(`hako_sandbox_queue_seconds_count{plugin="a"} %d`, callers*calls),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestCallAllocations bounds what a call costs in memory: metrics are on the path of every one.
func TestCallAllocations(t *testing.T) {
	m := New("")
	r := pipeline.Record{Method: abi.CallTool, Name: "echo", Source: "echo", Outcome: pipeline.OK,
		Duration: time.Millisecond, TraceID: "4bf92f3577b34da6"}
	allocated := testing.AllocsPerRun(100, func() {
		m.CallStarted(&pipeline.Running{Method: r.Method})
		m.CallQueued("echo", 0)
		m.InstanceRestored("echo", time.Microsecond)
		m.RequestAnswered("stateless", abi.CallTool, time.Millisecond)
		m.CallEnded(r)
	})
	if allocated > 1 {
		t.Errorf("%v allocations", allocated)
	}
}
