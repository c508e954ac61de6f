package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

const rules = `
version: 1
rules:
  - {name: no strict, action: deny, tools: [p_strict], reason: {en: too strict, ja: 厳しすぎます}}
  - {name: ask about big, action: ask, tools: [test/p_free, test/p_loose], when: 'arguments.n > 10', remember: 1m}
  - {name: no prompts for trials, action: deny, tools: [test/prompts/get], tenants: [trial]}
`

// people is an Approvals with a fixed answer.
type people struct {
	err   error
	asked []*approval.Question
	ways  []approval.Prompter
}

func (p *people) Ask(_ context.Context, q *approval.Question, way approval.Prompter) (string, error) {
	if err := way.Begin(); err != nil {
		return "", err
	}
	q.ID = "apr_1"
	p.asked, p.ways = append(p.asked, q), append(p.ways, way)
	if p.err != nil {
		return "", p.err
	}
	return "boss", nil
}

// ledger is an Audit that records events or fails.
type ledger struct {
	err, unready error
	events       []*audit.Event
}

func (l *ledger) Append(_ context.Context, event *audit.Event) error {
	if l.err != nil {
		return l.err
	}
	l.events = append(l.events, event)
	return nil
}

func (l *ledger) Ready() error { return l.unready }

func (l *ledger) Digest(data []byte) string { return fmt.Sprintf("digest of %d", len(data)) }

func (l *ledger) last() *audit.Event { return l.events[len(l.events)-1] }

// governed is a fixture with all parts of Governance.
type governed struct {
	*fixture
	people people
	ledger ledger
}

func newGoverned(t *testing.T, change func(*pipeline.Options)) *governed {
	t.Helper()
	p, err := policy.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	g := &governed{fixture: newFixture(t)}
	options := &pipeline.Options{Observer: &g.observer, Governance: pipeline.Governance{
		Policy: func() *policy.Policy { return p }, Approvals: &g.people, Audit: &g.ledger,
		Quotas: quota.New([]quota.Rule{{Name: "computing", CPU: time.Second}}, nil),
	}, Settings: pipeline.Settings{AuditFields: map[string][]string{"p_free": {"n"}}}}
	if change != nil {
		change(options)
	}
	g.Pipeline = pipeline.New(g.catalog, options)
	g.backend.answer = func() (*abi.Response, error) { return text("fine"), nil }
	return g
}

func (g *governed) tool(t *testing.T, name, arguments string) (*pipeline.Result, error) {
	t.Helper()
	return g.Call(t.Context(), &pipeline.Call{
		Caller: pipeline.Caller{Frontend: "terminal", User: "aki", Groups: []string{"dev"}, Client: "test",
			RequestID: "7",
			Locale:    "ja"},
		Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)},
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	var denied *pipeline.NotAllowedError
	if _, err := g.tool(t, "p_strict", `{}`); !errors.As(err, &denied) || !strings.Contains(err.Error(), "no strict") ||
		!strings.Contains(err.Error(), "厳しすぎます") {
		t.Errorf("denied: %v", err)
	}
	if g.observer.last.Outcome != pipeline.NotAllowed || g.observer.last.Rule != "no strict" ||
		len(g.people.asked) != 0 {
		t.Errorf("denied: %+v", g.observer.last)
	}
	if result, err := g.tool(t, "p_free", `{"n":1}`); err != nil || result.Outcome != pipeline.OK {
		t.Errorf("allowed: %v", err)
	}
	_, err := g.Call(t.Context(), &pipeline.Call{Caller: pipeline.Caller{Tenant: "trial"},
		Request: abi.Request{Method: abi.GetPrompt, Name: "p_ask", Arguments: json.RawMessage(`{"topic":"x"}`)}})
	if !errors.As(err, &denied) {
		t.Errorf("a prompt: %v", err)
	}
	view := g.catalog.View()
	for name, want := range map[string]bool{"p_strict": false, "p_free": true} {
		tool, _ := view.Tool(name)
		if got := g.Visible(pipeline.Caller{}, tool); got != want {
			t.Errorf("%s visible: %t", name, got)
		}
	}
}

// TestRecordedCaller: a record has what the policy knew of the caller, and which policy it was.
func TestRecordedCaller(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	_, err := g.Call(t.Context(), &pipeline.Call{
		Caller: pipeline.Caller{Frontend: "mcp-http", User: "aki", Token: "ci", Groups: []string{"dev"},
			Scopes: []string{"read"}, Email: "aki@example.com"},
		Request: abi.Request{Method: abi.CallTool, Name: "p_free", Arguments: json.RawMessage(`{"n":1}`)},
	})
	event := g.ledger.last()
	if by := event.Subject; err != nil || by.Token != "ci" || !slices.Equal(by.Groups, []string{"dev"}) ||
		!slices.Equal(by.Scopes, []string{"read"}) {
		t.Errorf("%v: recorded %+v", err, by)
	}
	p, err := policy.Parse([]byte(rules))
	if err != nil || p.ID() == "" || event.Decision.Policy != p.ID() {
		t.Errorf("%v: decision %+v of the policy %s", err, event.Decision, p.ID())
	}
	if record, _ := json.Marshal(event); strings.Contains(string(record), "aki@example.com") {
		t.Errorf("the record has the address: %s", record)
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	if result, err := g.tool(t, "p_free", `{"n":11}`); err != nil || result.Outcome != pipeline.OK {
		t.Fatalf("agreed to: %v", err)
	}
	q, way := g.people.asked[0], g.people.ways[0]
	if q.Tool != "p_free" || q.Plugin != "test" || string(q.Arguments) != `{"n":11}` || q.Rule != "ask about big" ||
		!q.Destructive || q.Remember != time.Minute || way.By.User != "aki" || way.By.Groups[0] != "dev" {
		t.Errorf("asked %+v by %+v", q, way.By)
	}
	if event := g.ledger.last(); event.Approval == nil || event.Approval.By != "boss" ||
		event.Approval.Answer != "yes" || event.Decision.Rule != "ask about big" {
		t.Errorf("recorded %+v", event)
	}
	for _, test := range []struct {
		name    string
		err     error
		outcome pipeline.Outcome
		answer  string
		want    string
	}{
		{"refused", &approval.RefusedError{By: "boss"}, pipeline.NotAllowed, approval.No, "refused by boss"},
		{"nobody there", approval.ErrUnreachable, pipeline.NotAllowed, approval.Unreachable, "hako approvals"},
		{"too late", approval.ErrExpired, pipeline.NotAllowed, approval.Expired, "in time"},
		{"with a second call", &approval.PendingError{Question: q}, pipeline.Asked, "pending", "is pending approval"},
	} {
		g.people.err = test.err
		g.backend.last = abi.Request{}
		_, err := g.tool(t, "p_free", `{"n":11}`)
		if err == nil || !strings.Contains(err.Error(), test.want) || g.observer.last.Outcome != test.outcome ||
			g.ledger.last().Approval.Answer != test.answer {
			t.Errorf("%s: %v, %+v", test.name, err, g.observer.last)
		}
		if g.backend.last.Name != "" {
			t.Errorf("%s: the tool was called", test.name)
		}
		if by := g.ledger.last().Approval.By; (by == "boss") != (test.answer == approval.No) {
			t.Errorf("%s: by %q", test.name, by)
		}
	}
}

// TestAskDuringCall checks that a broker can ask during a call and that a second call cannot bring the answer.
func TestAskDuringCall(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	g.backend.answer = func() (*abi.Response, error) {
		err := g.backend.invocation.Ask(context.Background(),
			broker.Question{Text: "rm -r x", Rule: "recursive rm", Reason: "deletes"})
		return text(fmt.Sprint(err)), nil
	}
	call := &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_free",
		Arguments: json.RawMessage(`{"n":1}`)}, Prompter: approval.Prompter{Later: true}}
	if result, err := g.Call(t.Context(), call); err != nil || result.Response.Content[0].Text != "<nil>" {
		t.Errorf("%v, %v", result, err)
	}
	if q := g.people.asked[0]; q.Detail != "rm -r x" || q.Rule != "recursive rm" || g.people.ways[0].Later {
		t.Errorf("asked %+v", q)
	}
	g.people.err = &approval.RefusedError{By: "boss"}
	if result, _ := g.Call(t.Context(), call); !strings.Contains(result.Response.Content[0].Text, "refused by boss") {
		t.Errorf("refused: %v", result.Response.Content[0].Text)
	}
	// What was refused is not asked again in the call, and there are at most ten questions.
	g.people.asked = nil
	g.backend.answer = func() (*abi.Response, error) {
		var last error
		for i := range 30 {
			if i == 9 {
				g.people.err = nil
			}
			last = g.backend.invocation.Ask(context.Background(), broker.Question{Text: fmt.Sprint(i / 3), Rule: "rm"})
		}
		return text(fmt.Sprint(last)), nil
	}
	result, err := g.Call(t.Context(), call)
	if err != nil || len(g.people.asked) != 10 || !strings.Contains(result.Response.Content[0].Text, "which is the limit") ||
		g.people.asked[3].Detail != "3" || g.people.asked[4].Detail != "3" {
		t.Errorf("%d asked, %v, %v", len(g.people.asked), result.Response.Content, err)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	g.backend.answer = func() (*abi.Response, error) {
		*g.backend.invocation.Steps = quota.StepsPerSecond
		return text("fine"), nil
	}
	if result, err := g.tool(t, "p_free", `{"n":1}`); err != nil || result.Outcome != pipeline.OK ||
		g.observer.last.Steps != quota.StepsPerSecond {
		t.Fatalf("%v, %+v", err, g.observer.last)
	}
	result, err := g.tool(t, "p_free", `{"n":1}`)
	if err != nil || result.Outcome != pipeline.Busy || !result.Response.IsError ||
		!strings.Contains(result.Response.Content[0].Text, "try again in") {
		t.Errorf("%v, %+v", err, result)
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	g.backend.answer = func() (*abi.Response, error) {
		return &abi.Response{StructuredContent: json.RawMessage(`{"ok":true}`)}, nil
	}
	if _, err := g.tool(t, "p_free", `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	event := g.ledger.last()
	if event.Type != audit.TypeCall || event.Outcome != "ok" || event.Subject.User != "aki" ||
		event.Subject.ClientName != "test" || event.RequestID != "7" ||
		event.Target.Name != "p_free" || event.Target.Plugin != "test" || string(event.Result) != `"digest of 11"` ||
		event.OutputBytes == 0 {
		t.Errorf("%+v", event)
	}
	if got := event.OutputSummary; got == nil || got.Kind != "object" || got.Bytes != event.OutputBytes ||
		got.Text != "" {
		t.Errorf("summary %+v", got)
	}
	if string(event.Arguments) != `{"digest":"digest of 7","n":1}` {
		t.Errorf("arguments %s", event.Arguments)
	}
	// Refused calls and unknown names are recorded too.
	for name, want := range map[string]string{"p_strict": "not_allowed", "nothing": "not_found",
		"p_free": "invalid_arguments"} {
		_, _ = g.tool(t, name, `{"secret":"s3cret"}`)
		event := g.ledger.last()
		if event.Outcome != want || event.Target.Name != name {
			t.Errorf("%s: %+v", name, event)
		}
		if encoded, err := json.Marshal(event); err != nil || strings.Contains(string(encoded), "s3cret") {
			t.Errorf("%s: %s, %v", name, encoded, err)
		}
	}
}

func TestUnrecorded(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	g.ledger.err = errors.New("disk full")
	result, err := g.tool(t, "p_free", `{"n":1}`)
	if err != nil || !result.Response.IsError ||
		!strings.Contains(result.Response.Content[0].Text, "could not be recorded") ||
		strings.Contains(result.Response.Content[0].Text, "fine") {
		t.Errorf("%v, %+v", err, result)
	}
	// Meanwhile calls must not have unrecorded effects.
	g.ledger.unready = g.ledger.err
	g.backend.last = abi.Request{}
	result, err = g.tool(t, "p_free", `{"n":1}`)
	if err != nil || !result.Response.IsError || !strings.Contains(result.Response.Content[0].Text, "was not made") ||
		g.backend.last.Name != "" {
		t.Errorf("%v, %+v", err, result)
	}
	g = newGoverned(t, func(o *pipeline.Options) { o.AuditOptional = true })
	g.ledger.err, g.ledger.unready = errors.New("disk full"), errors.New("disk full")
	if result, err := g.tool(t, "p_free", `{"n":1}`); err != nil || result.Outcome != pipeline.OK {
		t.Errorf("optional: %v, %+v", err, result)
	}
}

func TestPermitted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, tool, arguments string
		refusal               error
		permitted, runs       bool
	}{
		{"an allowed call", "p_free", `{"n":1}`, nil, true, true},
		{"one that a person agreed to", "p_free", `{"n":11}`, nil, true, true},
		{"one that ends there", "p_free", `{"n":1}`, errors.New("no room"), true, false},
		{"a denied one", "p_strict", `{}`, nil, false, false},
		{"wrong arguments", "p_free", `{"n":"x"}`, nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGoverned(t, nil)
			permitted, ran := false, false
			g.backend.answer = func() (*abi.Response, error) {
				ran = permitted
				return text("fine"), nil
			}
			_, _ = g.Call(t.Context(), &pipeline.Call{
				Request: abi.Request{Method: abi.CallTool, Name: test.tool, Arguments: json.RawMessage(test.arguments)},
				Permitted: func(context.Context) error {
					permitted = true
					return test.refusal
				},
			})
			if permitted != test.permitted || ran != test.runs {
				t.Errorf("permitted %t, ran %t", permitted, ran)
			}
		})
	}
}
