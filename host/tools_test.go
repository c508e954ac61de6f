package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// composer makes a plugin whose tools call the tools that match names.
func composer(t *testing.T, names ...string) []byte {
	t.Helper()
	text := fmt.Sprintf("name: composer\nversion: 1.0.0\ndescription: d\npermissions: {tools: {names: [%s], reason: r}}\n"+
		"limits: {calls: 20, parallelCalls: 4}\ntools:\n"+
		"  - {name: compose, description: d, inputSchema: {type: object}}\n"+
		"  - {name: find, description: d, inputSchema: {type: object}}\n", strings.Join(names, ", "))
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/compose"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// caller is an Approvals that asks the caller of a call.
type caller struct{}

func (caller) Ask(ctx context.Context, q *approval.Question, way approval.Prompter) (string, error) {
	if way.Ask == nil {
		return "", approval.ErrUnreachable
	}
	if err := way.Begin(); err != nil {
		return "", err
	}
	yes, err := way.Ask(ctx, q)
	if err == nil && !yes {
		err = &approval.RefusedError{}
	}
	return way.By.User, err
}

// eventList records calls.
type eventList struct{ events chan *audit.Event }

func (l *eventList) Ready() error           { return nil }
func (l *eventList) Digest(_ []byte) string { return "digest" }
func (l *eventList) Append(_ context.Context, e *audit.Event) error {
	l.events <- e
	return nil
}

// take returns the recorded calls.
func (l *eventList) take() (events []*audit.Event) {
	for len(l.events) > 0 {
		events = append(events, <-l.events)
	}
	return events
}

// composed is a host with a composer for the tools greet, wait and look, which the policy governs.
func composed(t *testing.T, policyText string, names ...string) (*world, *eventList) {
	t.Helper()
	p, err := policy.Parse([]byte("version: 1\n" + policyText))
	if err != nil {
		t.Fatal(err)
	}
	list := &eventList{make(chan *audit.Event, 10_000)}
	w := newWorld(t, func(o *host.Options) {
		o.Governance = pipeline.Governance{Policy: func() *policy.Policy { return p }, Audit: list,
			Quotas: quota.New(p.Quotas, nil), Approvals: caller{}}
		o.Settings = map[string]host.Settings{"code": {Limits: manifest.Limits{CPU: 100, Time: patience}}}
	})
	w.put("hello.wasm", plugin(t, "hello"))
	w.put("composer.wasm", composer(t, names...))
	w.load()
	for _, file := range []string{"hello.wasm", "composer.wasm"} {
		w.approve(file, nil)
	}
	w.load()
	return w, list
}

// compose calls tools by the composer and returns their texts.
func (w *world) compose(arguments string, change func(*pipeline.Call)) []string {
	w.t.Helper()
	call := &pipeline.Call{Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"},
		Request: abi.Request{Method: abi.CallTool, Name: "compose", Arguments: json.RawMessage(arguments)}}
	if change != nil {
		change(call)
	}
	result, err := w.Call(w.t.Context(), call)
	if err != nil {
		w.t.Fatal(err)
	}
	var got struct{ Results []string }
	if json.Unmarshal(result.Response.StructuredContent, &got) != nil {
		w.t.Fatalf("%+v", result.Response)
	}
	return got.Results
}

func TestInnerCalls(t *testing.T) {
	t.Parallel()
	w, list := composed(t, "quotas: [{name: one at a time, concurrent: 1, rate: 1000}]\n", `"*"`)
	got := w.compose(`{"calls":[{"name":"greet","arguments":{"name":"Aki"}},{"name":"gret","arguments":{}},
		{"name":"greet","arguments":{"name":1}},{"name":"compose"},{"name":"greet","arguments":{"name":"海"}}]}`, nil)
	want := []string{"Hello, Aki", `not-found: unknown tool "gret": did you mean greet?`,
		"invalid: the arguments of greet are not valid", "denied: compose is not allowed: it calls other tools",
		"Hello, 海"}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("call %d: %q, want %q", i, got[i], want[i])
		}
	}
	events := list.take()
	outer := events[len(events)-1]
	if len(events) != 6 || outer.Parent != "" || outer.Target.Name != "compose" {
		t.Fatalf("%d events, the last is %+v", len(events), outer)
	}
	for _, e := range events[:5] {
		if e.Parent != outer.Call || e.Via != "composer" || e.Subject.User != "aki" || e.Call == outer.Call {
			t.Errorf("%+v", e)
		}
	}
}

func TestInnerCallLimits(t *testing.T) {
	t.Parallel()
	w, list := composed(t, "", `"gr*"`)
	calls := strings.Repeat(`{"name":"greet","arguments":{"name":"x"}},`, 21)
	got := w.compose(`{"calls":[`+strings.TrimSuffix(calls, ",")+`]}`, nil)
	if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != "Hello, x" })); n != 20 ||
		!strings.HasPrefix(got[20], "limit: one call may call other tools 20 times (limits.calls)") {
		t.Errorf("%d calls, then %q", n, got[20])
	}
	list.take()
	if got := w.compose(`{"calls":[{"name":"wait"}]}`, nil); !strings.HasPrefix(got[0],
		"denied: wait is not allowed: the plugin composer may not call it: permissions.tools of its manifest does not name it") {
		t.Errorf("outside of the permission: %q", got)
	}
	list.take()
	// Calls that nobody waits for end with the plugin's own call, and are recorded.
	w.compose(`{"calls":[{"name":"greet","arguments":{"name":"x"}},{"name":"greet","arguments":{"name":"x"}}],"leave":true}`, nil)
	if n := len(list.take()); n < 1 || n > 3 { // one that has not begun is not recorded
		t.Errorf("%d events", n)
	}
}

// TestHostileQuestions: a tool that calls others cannot ask a person again what was refused, nor more than ten questions,
// also if it asks them at once.
func TestHostileQuestions(t *testing.T) {
	t.Parallel()
	w, _ := composed(t, "rules: [{name: ask, action: ask, tools: [greet], via: [composer]}]", `"*"`)
	calls := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{"name":"greet","arguments":{"name":%q}}`, name))
		}
		return `{"calls":[` + strings.Join(list, ",") + `]}`
	}
	many := strings.Split("abcdefghijkl", "")
	for name, test := range map[string]struct {
		calls string
		yes   bool
		asked int
		want  []string // in order, of the results that are not greetings
	}{
		"refused, again": {calls("x", "x", "y", "x"), false, 2, slices.Repeat([]string{"it was refused"}, 4)},
		"allowed, again": {calls("x", "x"), true, 2, nil},
		"too many":       {calls(many...), true, 10, slices.Repeat([]string{"10 questions in this call"}, 2)},
	} {
		var mu sync.Mutex
		asked := 0
		got := w.compose(test.calls, func(c *pipeline.Call) {
			c.Prompter.Ask = func(context.Context, *approval.Question) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return test.yes, nil
			}
		})
		got = slices.DeleteFunc(got, func(text string) bool { return strings.HasPrefix(text, "Hello, ") })
		if asked != test.asked || len(got) != len(test.want) {
			t.Errorf("%s: asked %d times: %q", name, asked, got)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

func TestInnerCallPolicy(t *testing.T) {
	t.Parallel()
	w, list := composed(t, `rules:
  - {name: greetings are direct, action: deny, tools: [greet], when: 'via == "composer" && arguments.name == "no"'}
  - {name: ask, action: ask, tools: [greet], via: [composer], when: 'arguments.name == "ask"'}
  - {name: not by tools, action: deny, tools: [wait], via: [composer]}
`, `"*"`)
	var asked []*approval.Question
	answer := func(c *pipeline.Call) {
		c.Prompter.Ask = func(_ context.Context, q *approval.Question) (bool, error) {
			asked = append(asked, q)
			return true, nil
		}
	}
	got := w.compose(`{"calls":[{"name":"greet","arguments":{"name":"no"}},{"name":"greet","arguments":{"name":"ask"}},
		{"name":"wait"}]}`, answer)
	if !strings.HasPrefix(got[0], "denied: ") || got[1] != "Hello, ask" || !strings.HasPrefix(got[2], "denied: ") {
		t.Errorf("%q", got)
	}
	if len(asked) != 1 || asked[0].Via != "compose" {
		t.Errorf("asked %+v", asked)
	}
	got = w.compose(`{"calls":[{"name":"greet","arguments":{"name":"ask"}}]}`, nil)
	if !strings.HasPrefix(got[0], "denied: ") || !strings.Contains(got[0], "called on its own") {
		t.Errorf("with nobody to ask: %q", got)
	}
	list.take()
	if got, err := w.call("greet", `{"name":"no"}`); err != nil || got != "Hello, no" {
		t.Errorf("a direct call: %q, %v", got, err)
	}
	// The list has what the policy may allow to the plugin.
	result, err := w.call("find", `{"query":"greeting tools","limit":10}`)
	if err != nil || !strings.Contains(result, `"greet"`) || strings.Contains(result, `"wait"`) ||
		strings.Contains(result, `"compose"`) {
		t.Errorf("%s, %v", result, err)
	}
}
