package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

const overwriting = `
name: notes
version: 1.0.0
description: d
tools:
  - name: read
    description: d
    annotations: {readOnlyHint: true}
    inputSchema: {type: object, properties: {file: {type: string}}}
    outputSchema: {type: object, properties: {text: {type: string}, next: {type: integer}}}
  - name: write
    description: d
    replaces: {argument: content, tool: read, arguments: {file: path}, result: text, more: next, when: {overwrite: true}}
    inputSchema: {type: object, properties: {path: {type: string}, content: {type: string}, overwrite: {type: boolean}}}
`

// notes has one note, which writing replaces.
type notes struct {
	note  string
	read  *abi.Response // instead of the note
	asks  bool          // before it reads
	calls []catalog.Invocation
}

func (n *notes) Call(ctx context.Context, invocation *catalog.Invocation) (*abi.Response, error) {
	n.calls = append(n.calls, *invocation)
	if invocation.Request.Name != "read" {
		return text("written"), nil
	}
	if n.asks {
		if err := invocation.Ask(ctx, broker.Question{Text: "cat a.md"}); err != nil {
			return &abi.Response{IsError: true, Content: []abi.Content{{Type: "text", Text: "nobody agreed"}}}, nil
		}
	}
	if n.read != nil {
		return n.read, nil
	}
	content, err := json.Marshal(map[string]string{"text": n.note})
	return &abi.Response{Content: []abi.Content{{Type: "text", Text: "read"}}, StructuredContent: content}, err
}

// asked is an Approvals that compares, as approval.Queue does, and then answers with a function.
type asked struct {
	questions []*approval.Question
	answer    func() error
}

func (a *asked) Ask(ctx context.Context, q *approval.Question, prompter approval.Prompter) (string, error) {
	q.ID = "apr_1"
	if prompter.Compare != nil {
		prompter.Compare(ctx, q)
	}
	a.questions = append(a.questions, q)
	return "boss", a.answer()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	says := func(what string) *abi.Response {
		return &abi.Response{IsError: true, Content: []abi.Content{{Type: "text", Text: what}}}
	}
	const write = `{"path":"a.md","content":"two","overwrite":true}`
	for name, test := range map[string]struct {
		arguments, readers string
		read               *abi.Response
		changes            bool // the note changes while people think
		asks               bool // the reading tool asks
		want               string
		reads, writes      int
	}{
		"an overwrite":      {arguments: write, want: "- one\n+ two", reads: 2, writes: 1},
		"a new file":        {arguments: `{"path":"a.md","content":"two"}`, want: "two", writes: 1},
		"changed meanwhile": {arguments: write, changes: true, want: "- one\n+ two", reads: 2},
		"too large": {arguments: write, want: "two\nNot compared with the current content: it is too large.", reads: 2, writes: 1,
			read: &abi.Response{StructuredContent: json.RawMessage(`{"text":"o","next":9}`)}},
		"binary":    {arguments: write, read: says("a.md is binary."), want: "two\nNot compared with the current content: a.md is binary.", reads: 4, writes: 1},
		"no member": {arguments: write, read: &abi.Response{StructuredContent: json.RawMessage(`{}`)}, want: "two\nNot compared with the current content: it could not be read.", reads: 2, writes: 1},
		"it asks":   {arguments: write, asks: true, want: "two\nNot compared with the current content: nobody agreed.", reads: 4, writes: 1},
		"not the caller's": {arguments: write, readers: "action: deny", writes: 1,
			want: "two\nNot compared with the current content: the policy does not let the caller read it."},
		"with a question": {arguments: write, readers: "action: ask", writes: 1,
			want: "two\nNot compared with the current content: the policy does not let the caller read it."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Parse([]byte(overwriting))
			if err != nil {
				t.Fatal(err)
			}
			if test.readers == "" {
				test.readers = "action: allow"
			}
			rules, err := policy.Parse([]byte("version: 1\nrules:\n  - {name: r, tools: [n_read], " + test.readers +
				"}\n  - {name: w, action: ask, tools: [n_write]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			backend := &notes{note: "one", read: test.read, asks: test.asks}
			c := new(catalog.Catalog)
			if err := c.Put(catalog.Source{Name: "notes", Prefix: "n_", Backend: backend}, m); err != nil {
				t.Fatal(err)
			}
			people := &asked{answer: func() error {
				if test.changes {
					backend.note = "three"
				}
				return nil
			}}
			p := pipeline.New(c, &pipeline.Options{Governance: pipeline.Governance{
				Policy: func() *policy.Policy { return rules }, Approvals: people}})
			_, err = p.Call(t.Context(), &pipeline.Call{
				Caller:  pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: "aki", Client: "claude", ClientVersion: "1.2"},
				Request: abi.Request{Method: abi.CallTool, Name: "n_write", Arguments: json.RawMessage(test.arguments)}})
			var denied *pipeline.NotAllowedError
			if test.changes != (errors.As(err, &denied) && strings.Contains(err.Error(), "has changed since")) ||
				!test.changes && err != nil {
				t.Errorf("the call: %v", err)
			}
			if len(people.questions) != 1 || people.questions[0].Client != "claude 1.2" {
				t.Fatalf("asked %+v", people.questions)
			}
			values := people.questions[0].Describe("en").Values
			content := strings.Join(values[1].Lines(), "\n")
			if got, _, _ := strings.Cut(content, "\nCompared"); got != test.want {
				t.Errorf("got %q", content)
			}
			reads, writes := 0, 0
			for _, call := range backend.calls {
				if call.Request.Name == "write" {
					writes++
				} else if reads++; string(call.Request.Arguments) != `{"file":"a.md"}` || call.User != "aki" {
					t.Errorf("read %s for %s", call.Request.Arguments, call.User)
				}
			}
			if reads != test.reads || writes != test.writes {
				t.Errorf("%d reads, %d writes", reads, writes)
			}
		})
	}
}
