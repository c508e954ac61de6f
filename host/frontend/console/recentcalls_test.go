package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// slow is a tool that reports progress and then waits until it is canceled or released.
type slow struct{ began, release chan struct{} }

func (s *slow) Call(ctx context.Context, in *catalog.Invocation) (*abi.Response, error) {
	_, span := trace.Start(ctx, "http GET", trace.Client)
	span.Text(trace.ServerAddress, "api.example.com")
	defer span.End()
	in.Progress(abi.Progress{Progress: 1, Total: 4, Message: "page 1 of 4"})
	close(s.began)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.release:
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "done"}}}, nil
	}
}

// running is a call of a slow tool by somebody of the tenant acme.
func (w *world) running(name string, arguments string) (s *slow, ended <-chan *pipeline.Result) {
	w.t.Helper()
	s = &slow{make(chan struct{}), make(chan struct{})}
	w.offer("reports", s, manifest.Tool{Name: name})
	results := make(chan *pipeline.Result, 1)
	go func() {
		result, err := w.host.Call(w.t.Context(), &pipeline.Call{
			Caller: pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki", Client: "Claude",
				ClientVersion: "1.2", RequestID: "7"},
			Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: []byte(arguments)},
		})
		if err != nil {
			w.t.Errorf("the call: %v", err)
		}
		results <- result
	}()
	<-s.began
	return s, results
}

// runningList is the response to GET calls/running.
type runningList struct {
	Items []struct {
		ID, Tool, Plugin, User, Tenant, Client, Question, Step, Replica string
		ElapsedMS                                                       float64
		Progress                                                        struct {
			Share   float64
			Message string
		}
	}
	More int
}

func (b *browser) running() (list runningList) {
	b.get("calls/running").into(b.t, &list)
	return list
}

// TestRunningCall: a call is listed from its start, with its progress. An admin stops it; the caller and the audit log
// are told, and its page has the steps.
func TestRunningCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	viewer, admin := w.as(console.Viewer), w.as(console.Admin)
	stream := viewer.watch(w.serve())
	_, ended := w.running("report", `{"city":"Tokyo"}`)
	stream.expect("started")
	list := viewer.running()
	if len(list.Items) != 1 || list.More != 0 {
		t.Fatalf("%+v", list)
	}
	call := list.Items[0]
	if call.Tool != "report" || call.Plugin != "reports" || call.User != "aki" || call.Tenant != "acme" ||
		call.Client != "Claude 1.2" || call.ElapsedMS <= 0 || call.Step != "http GET" || call.Progress.Share != 0.25 ||
		call.Progress.Message != "page 1 of 4" || call.Question != "" {
		t.Errorf("%+v", call)
	}
	page := viewer.get("calls/" + call.ID)
	if !strings.Contains(page.body, `"running":{"id":"`+call.ID) || !strings.Contains(page.body, "api.example.com") {
		t.Errorf("the page: %s", page.body)
	}
	stop := "calls/" + call.ID + "/stop"
	for name, refused := range map[string]*answer{
		"a viewer":        viewer.post(stop, struct{}{}),
		"an approver":     w.as(console.Approver).post(stop, struct{}{}),
		"without a login": w.browser().post(stop, struct{}{}),
		"without the session's token": admin.do("POST", stop, struct{}{}, func(r *http.Request) {
			r.Header.Del("X-Hako-CSRF")
		}),
		"another body": admin.post(stop, `{"all":true}`),
	} {
		if refused.status < 400 {
			t.Errorf("%s stops it: %d %s", name, refused.status, refused.body)
		}
	}
	if got := admin.post("calls/call_other/stop", struct{}{}); got.code() != "conflict" {
		t.Errorf("a call that does not run: %d %s", got.status, got.body)
	}
	select {
	case <-ended:
		t.Fatal("a refused request has stopped the call")
	default:
	}
	if got := admin.post(stop, struct{}{}); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	result := <-ended
	if result.Outcome != pipeline.Stopped || !strings.Contains(result.Response.Content[0].Text, "an operator") {
		t.Errorf("%s: %v", result.Outcome, result.Response.Content)
	}
	if data := stream.expect("call"); !strings.Contains(data, `"id":"`+call.ID) ||
		!strings.Contains(data, `"outcome":"stopped","failed":false`) {
		t.Errorf("the end: %s", data)
	}
	if list := viewer.running(); len(list.Items) != 0 {
		t.Errorf("it still runs: %+v", list)
	}
	if records := w.records(); !strings.Contains(records, "call.stop ok admin 203.0.113.7") ||
		!strings.Contains(records, "report stopped aki") {
		t.Errorf("the audit log has\n%s", records)
	}
	page = viewer.get("calls/" + call.ID)
	for _, want := range []string{`"kept":true`, `"name":"policy"`, `"name":"http GET"`, `"server.address":"api.example.com"`,
		`"requestId":"7"`, `"client":"Claude 1.2"`, `"error":"an operator of this server stopped the call`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s: %s", want, page.body)
		}
	}
	if strings.Contains(page.body, "Tokyo") {
		t.Errorf("arguments that nobody wants recorded: %s", page.body)
	}
	if got := admin.post(stop, struct{}{}); got.code() != "conflict" {
		t.Errorf("once more: %d %s", got.status, got.body)
	}
}

// TestStopUnrecorded: a call is not stopped unless that can be recorded.
func TestStopUnrecorded(t *testing.T) {
	t.Parallel()
	var log *journal
	w := newWorld(t, func(w *world, o *console.Options) { log = o.Journal.(*journal) })
	admin := w.as(console.Admin)
	s, ended := w.running("report", `{}`)
	log.fail = fmt.Errorf("disk full")
	if got := admin.post("calls/"+admin.running().Items[0].ID+"/stop", struct{}{}); got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.body)
	}
	close(s.release)
	if result := <-ended; result.Outcome != pipeline.OK {
		t.Errorf("it ended as %s", result.Outcome)
	}
}

// TestCallThatWaits: a call that waits for a person names its question. Stopping it withdraws the question.
func TestCallThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "danger"})
	approver := w.as(console.Approver)
	approver.watch(w.serve())
	w.Look(w.browser().request("GET", "overview", nil))()
	done := make(chan pipeline.Outcome, 1)
	go func() {
		result, err := w.host.Call(t.Context(), &pipeline.Call{Caller: pipeline.Caller{User: "aki"},
			Request: abi.Request{Method: abi.CallTool, Name: "danger"}})
		if err != nil {
			t.Errorf("the call: %v", err)
			done <- ""
			return
		}
		done <- result.Outcome
	}()
	waits := func() bool {
		list := approver.running()
		return len(list.Items) == 1 && list.Items[0].Question != ""
	}
	if !testwait.Until(t, waits) {
		t.Fatal("no call waits")
	}
	call := approver.running().Items[0]
	if questions := approver.questions(); len(questions) != 1 || questions[0].ID != call.Question ||
		call.Step != "approval" {
		t.Errorf("%+v waits for %+v", call, questions)
	}
	w.as(console.Admin).post("calls/"+call.ID+"/stop", struct{}{})
	if outcome := <-done; outcome != pipeline.Stopped {
		t.Errorf("it ended as %q", outcome)
	}
	if questions := approver.questions(); len(questions) != 0 {
		t.Errorf("the question still waits: %+v", questions)
	}
}

// TestCallFromTheLog: the page of a call that is no longer in memory has what the audit log knows, and says so.
func TestCallFromTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	if err := w.log.Append(t.Context(), &audit.Event{Type: audit.TypeCall, Call: "call_OLD", Outcome: "timeout",
		Subject: audit.Subject{User: "aki", Frontend: "slack"}, Target: audit.Target{Plugin: "weather", Name: "get"},
		TraceID: "4bf92f35", RequestID: "9"}); err != nil {
		t.Fatal(err)
	}
	page := b.get("calls/call_OLD")
	for _, want := range []string{`"kept":false`, `"steps":[]`, `"requestId":"9"`, `"traceId":"4bf92f35"`,
		`The call took longer`, `plugin.weather.limits.time`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s: %s", want, page.body)
		}
	}
	if search := b.get("audit?tool=get"); !strings.Contains(search.body, `"call":"call_OLD"`) {
		t.Errorf("the audit log: %s", search.body)
	}
	if got := b.get("calls/call_NONE"); got.code() != "not_found" || !strings.Contains(got.body, "another replica") {
		t.Errorf("an unknown call: %d %s", got.status, got.body)
	}
	if got := w.browser().get("calls/call_OLD"); got.code() != "unauthenticated" {
		t.Errorf("without a login: %d %s", got.status, got.body)
	}
}

// TestRecordedArguments: the lists and the page show the arguments and results that the operator wants recorded.
func TestRecordedArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	r := ended("get", pipeline.OK, time.Millisecond)
	r.ID, r.Arguments = "call_A", map[string]json.RawMessage{"city": json.RawMessage(`"Tokyo"`)}
	r.Summary = &audit.OutputSummary{Kind: "text", Text: "sunny"}
	w.traffic.CallEnded(r)
	r.ID, r.Arguments = "call_B", map[string]json.RawMessage{"city": json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}
	w.traffic.CallEnded(r)
	if list := b.get("calls/finished").body; !strings.Contains(list, `"arguments":{"city":"Tokyo"},"text":"sunny"`) ||
		len(list) > 2000 {
		t.Errorf("%d bytes: %s", len(list), list[:min(len(list), 2000)])
	}
	if page := b.get("calls/call_A").body; !strings.Contains(page, `"fields":{"city":"Tokyo"}`) ||
		!strings.Contains(page, `"text":"sunny"`) {
		t.Errorf("the page: %s", page)
	}
}

// TestManyRunningCalls: however many calls run and end, what is kept of them is bounded, and the rest is counted.
func TestManyRunningCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	const n = 3 * console.MaxRunning
	for i := range n {
		w.traffic.CallStarted(&pipeline.Running{ID: fmt.Sprint("call_", i), Method: "tools/call", Started: time.Now()})
	}
	if list := b.running(); len(list.Items) != console.MaxRunning || list.More != n-console.MaxRunning {
		t.Errorf("%d are listed, %d more", len(list.Items), list.More)
	}
	for i := range n {
		r := ended("tool", pipeline.OK, time.Millisecond)
		r.ID = fmt.Sprint("call_", i)
		w.traffic.CallEnded(r)
	}
	var finished struct{ Items []struct{ ID string } }
	b.get("calls/finished").into(t, &finished)
	if list := b.running(); len(list.Items) != 0 || list.More != 0 || len(finished.Items) != console.MaxFinished ||
		finished.Items[0].ID != fmt.Sprint("call_", n-1) {
		t.Errorf("%d run, %d more, %d have ended", len(list.Items), list.More, len(finished.Items))
	}
}
