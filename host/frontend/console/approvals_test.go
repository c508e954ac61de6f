package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

type questionJSON struct {
	ID, Tool, Why, Rule string
	Description         approval.Description
	May                 bool
	Caller              struct{ User, Tenant, Frontend string }
}

// asked makes a call that asks, by the user at the frontend, and returns its question, and a channel with the call's
// outcome.
func (w *world) asked(tool, user, frontend, arguments string) (*approval.Question, <-chan error) {
	w.t.Helper()
	told, outcome := make(chan *approval.Question, 1), make(chan error, 1)
	stop := w.approvals.Watch(func(*approval.Question) bool { return true }, func(q *approval.Question) { told <- q })
	defer stop()
	go func() {
		_, err := w.host.Call(context.WithoutCancel(w.t.Context()), &pipeline.Call{
			Caller:  pipeline.Caller{Frontend: frontend, User: user, Tenant: "acme"},
			Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: []byte(arguments)},
		})
		outcome <- err
	}()
	select {
	case q := <-told:
		return q, outcome
	case err := <-outcome:
		w.t.Fatalf("the call was over without a question: %v", err)
	case <-testwait.Context(w.t).Done():
		w.t.Fatal("nobody was asked")
	}
	return nil, nil
}

func (b *browser) questions() []questionJSON {
	b.t.Helper()
	var list struct{ Items []questionJSON }
	b.get("approvals").into(b.t, &list)
	return list.Items
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "danger"})
	q, outcome := w.asked("danger", "aki", pipeline.FrontendHTTP, `{"a":"<b>\u202e"}`)
	viewer, approver := w.as(console.Viewer), w.as(console.Approver)
	if list := viewer.questions(); len(list) != 1 || list[0].May || !strings.Contains(list[0].Why, "approver") {
		t.Errorf("to a viewer: %+v", list)
	}
	list := approver.questions()
	if len(list) != 1 || !list[0].May || list[0].ID != q.ID || list[0].Caller.User != "aki" ||
		!reflect.DeepEqual(list[0].Description.Values, []approval.Value{{Name: "a", Text: "<b>␦"}}) {
		t.Fatalf("to an approver: %+v", list)
	}
	if got := viewer.get("approvals/" + q.ID + "/arguments"); got.body != `{"json":"{\n  \"a\": \"\u003cb\u003e␦\"\n}"}`+"\n" {
		t.Errorf("the exact arguments: %d %s", got.status, got.body)
	}
	if got := viewer.get("approvals/apr_unknown/arguments"); got.status != http.StatusNotFound {
		t.Errorf("the arguments of an unknown one: %d", got.status)
	}
	for body, code := range map[string]string{
		`{"answer":"maybe"}`: "invalid", `{"answer":"yes","reason":"` + strings.Repeat("x", 501) + `"}`: "invalid",
		`{"answer":true}`: "invalid", `{}`: "invalid",
	} {
		if got := approver.post("approvals/"+q.ID, body); got.code() != code {
			t.Errorf("%.40s: %d %s", body, got.status, got.body)
		}
	}
	if got := approver.post("approvals/apr_unknown", map[string]string{"answer": "yes"}); got.status != http.StatusNotFound {
		t.Errorf("an unknown one: %d", got.status)
	}
	if got := approver.post("approvals/"+q.ID, map[string]string{"answer": "yes", "reason": "looks good"}); got.status != http.StatusOK {
		t.Errorf("yes: %d %s", got.status, got.body)
	}
	if err := <-outcome; err != nil {
		t.Errorf("the call: %v", err)
	}
	if got := approver.post("approvals/"+q.ID, map[string]string{"answer": "no"}); got.status != http.StatusConflict {
		t.Errorf("a second answer: %d %s", got.status, got.body)
	}
	w.recorded("approval.answer begun approver", "approval.answer ok approver 203.0.113.7")
	q, outcome = w.asked("danger", "aki", pipeline.FrontendHTTP, `{}`)
	approver.post("approvals/"+q.ID, map[string]string{"answer": "no"})
	if err := <-outcome; err == nil || !strings.Contains(err.Error(), "refused by approver") {
		t.Errorf("no: %v", err)
	}
}

// TestNamedApprovers: where a rule names approvers, a role is not enough, and nobody agrees to calls of its own unless
// it is among them.
func TestNamedApprovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) {
		boss := tokenOf(console.Approver)
		boss.Name, boss.User, boss.Hash = "boss", "boss@example.com", hashOf("hako_boss")
		o.Logins.Tokens = append(o.Logins.Tokens, boss)
	})
	w.offer("tools", echo, manifest.Tool{Name: "approved"})
	q, outcome := w.asked("approved", "admin", pipeline.FrontendConsole, `{}`)
	admin := w.as(console.Admin)
	if list := admin.questions(); list[0].May ||
		!strings.Contains(list[0].Why, "boss@example.com, the group hr-admins") {
		t.Errorf("to an admin who made the call: %+v", list)
	}
	if got := admin.post("approvals/"+q.ID, map[string]string{"answer": "yes"}); got.status != http.StatusForbidden {
		t.Errorf("the admin's own yes: %d %s", got.status, got.body)
	}
	boss := w.browser()
	boss.post("login", map[string]string{"token": "hako_boss"})
	if got := boss.post("approvals/"+q.ID, map[string]string{"answer": "yes"}); got.status != http.StatusOK {
		t.Errorf("the boss: %d %s", got.status, got.body)
	}
	if err := <-outcome; err != nil {
		t.Errorf("the call: %v", err)
	}
}

func TestTryTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "echo",
		InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		manifest.Tool{Name: "forbidden"},
		manifest.Tool{Name: "danger"})
	w.offer("large", backend(large), manifest.Tool{Name: "large"})
	w.offer("wide", backend(wide), manifest.Tool{Name: "wide"})
	b := w.as(console.Admin)
	for body, want := range map[string]string{
		`{"arguments":{"n":1}}`:   `"outcome":"ok","isError":false`,
		`{}`:                      `"outcome":"ok","isError":false`,
		`{"arguments":{"n":"x"}}`: `"outcome":"invalid_arguments","isError":true`,
		`{"arguments":[1]}`:       `"code":"invalid"`,
		`{"arguments":"x"}`:       `"code":"invalid"`,
		`{"other":1}`:             `"code":"invalid"`,
	} {
		if got := b.post("tools/echo/call", body); !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, want)
		}
	}
	if got := b.post("tools/forbidden/call", `{}`); got.status != http.StatusOK ||
		!strings.Contains(got.body, `"outcome":"not_allowed","isError":true`) || !strings.Contains(got.body, "never") {
		t.Errorf("forbidden: %d %s", got.status, got.body)
	}
	if got := b.post("tools/danger/call", `{}`); !strings.Contains(got.body, `"outcome":"not_allowed"`) {
		t.Errorf("with nobody to ask: %d %s", got.status, got.body)
	}
	if got := b.post("tools/nothing/call", `{}`); got.status != http.StatusNotFound {
		t.Errorf("unknown: %d", got.status)
	}
	if got := b.post("tools/large/call", `{}`); !strings.Contains(got.body, `"cut":true`) || len(got.body) > 1<<20 {
		t.Errorf("large: %d bytes", len(got.body))
	}
	if got := b.post("tools/wide/call", `{}`); !strings.Contains(got.body, `"cut":true`) ||
		!strings.Contains(got.body, "in short") || strings.Contains(got.body, "structured") {
		t.Errorf("too much of one and little of the other: %.200s", got.body)
	}
	if got := b.post("tools/echo/call", `{"arguments":{"n":`+strings.Repeat("1", 1<<20)+`}}`); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("large arguments: %d", got.status)
	}
	w.recorded("echo ok admin 203.0.113.7", "forbidden not_allowed admin 203.0.113.7")
}

// wide answers with more structured content than is shown, and in few words.
func wide(context.Context, *catalog.Invocation) (*abi.Response, error) {
	structured := []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "in short"}}, StructuredContent: structured}, nil
}

// large answers with more than is shown.
func large(context.Context, *catalog.Invocation) (*abi.Response, error) {
	text := strings.Repeat("x", 700<<10)
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: text}, {Type: abi.Image, MIMEType: "image/png",
		Data: []byte(text)}}}, nil
}

// TestManyQuestions: the list is bounded, and says how many questions it leaves out.
func TestManyQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var members []string
	for i := range 30 {
		members = append(members, fmt.Sprintf(`"a%d":%q`, i, strings.Repeat("あ\n", 500)))
	}
	const asked = 40
	for range asked {
		q := &approval.Question{Caller: approval.Caller{User: "aki"}, Tool: "danger", Plugin: "tools",
			Arguments: []byte("{" + strings.Join(members, ",") + "}")}
		_, err := w.approvals.Ask(t.Context(), q, approval.Prompter{Later: true, By: approval.Person{User: "aki"}})
		if pending := (*approval.PendingError)(nil); !errors.As(err, &pending) {
			t.Fatal(err)
		}
	}
	got := w.as(console.Approver).get("approvals")
	var list struct {
		Items []questionJSON
		More  int
	}
	got.into(t, &list)
	if len(got.body) > 600<<10 || len(list.Items) == 0 || list.More == 0 || len(list.Items)+list.More != asked {
		t.Errorf("%d bytes, %d questions and %d more", len(got.body), len(list.Items), list.More)
	}
}

// TestAnswerOfSecondCall: a client without a session brings the answer with a second call. Until it does, the history has
// the answer that was given elsewhere.
func TestAnswerOfSecondCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "danger"})
	admin := w.as(console.Admin)
	for answer, want := range map[string]string{"": "pending", "yes": "yes admin", "no": "no admin"} {
		_, err := w.host.Call(t.Context(), &pipeline.Call{
			Caller:   pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: "aki" + answer, Tenant: "acme"},
			Request:  abi.Request{Method: abi.CallTool, Name: "danger", Arguments: []byte("{}")},
			Prompter: approval.Prompter{Later: true},
		})
		var pending *approval.PendingError
		if !errors.As(err, &pending) {
			t.Fatal(err)
		}
		if answer != "" {
			admin.post("approvals/"+pending.Question.ID, `{"answer":"`+answer+`"}`)
		}
		var history struct {
			Items []struct {
				Outcome  string
				Approval struct{ ID, Answer, By string }
			}
		}
		admin.get("audit?asked=yes&user=aki"+answer).into(t, &history)
		if len(history.Items) != 1 || history.Items[0].Outcome != "asked" {
			t.Fatalf("%+v", history)
		}
		a := history.Items[0].Approval
		if got := strings.TrimSpace(a.Answer + " " + a.By); got != want || a.ID != pending.Question.ID {
			t.Errorf("answered %q: %q", answer, got)
		}
	}
}

// TestAllowRules: approvers see rules that would allow a call, admins save them beside the policy, and neither answers.
func TestAllowRules(t *testing.T) {
	t.Parallel()
	proposals := filepath.Join(t.TempDir(), "hako.policy.proposed.yaml")
	w := newWorld(t, func(_ *world, o *console.Options) { o.Proposals = proposals })
	w.offer("tools", echo, manifest.Tool{Name: "danger"})
	q, outcome := w.asked("danger", "aki", pipeline.FrontendHTTP, `{"a":"<b>"}`)
	var shown struct {
		Rules        []approval.AllowRule
		Before, File string
	}
	w.as(console.Approver).get("approvals/"+q.ID+"/rules").into(t, &shown)
	if len(shown.Rules) != 3 || shown.Before != q.Rule || shown.File != proposals {
		t.Fatalf("shown: %+v", shown)
	}
	admin := w.as(console.Admin)
	for _, test := range []struct {
		body   string
		status int
	}{
		{`{"scope":"caller"}`, http.StatusOK}, {`{"scope":"caller"}`, http.StatusConflict},
		{`{"scope":"anything"}`, http.StatusBadRequest}, {`{"scope":"arguments"}`, http.StatusOK},
	} {
		if got := admin.post("approvals/"+q.ID+"/rules", test.body); got.status != test.status {
			t.Errorf("%s: %d %s", test.body, got.status, got.body)
		}
	}
	saved, err := os.ReadFile(proposals)
	if err != nil || !strings.Contains(string(saved), shown.Rules[0].YAML) || !strings.Contains(string(saved), shown.Rules[1].YAML) ||
		strings.Contains(string(saved), shown.Rules[2].YAML) {
		t.Errorf("%v: %s", err, saved)
	}
	if list := admin.questions(); len(list) != 1 {
		t.Errorf("%d questions wait", len(list))
	}
	if got := admin.post("approvals/"+q.ID, `{"answer":"no"}`); got.status != http.StatusOK {
		t.Errorf("answer: %d %s", got.status, got.body)
	}
	<-outcome
}
