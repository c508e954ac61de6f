package pipeline_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// token is a made-up secret, split so that no scanner reports this file.
var token = "ghp" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"

const mark = "[masked: github-pat]"

func newScanned(t *testing.T, rules secretscan.Rules) *governed {
	t.Helper()
	s, err := secretscan.New(&rules)
	if err != nil {
		t.Fatal(err)
	}
	return newGoverned(t, func(o *pipeline.Options) { o.Scanner = func() *secretscan.Scanner { return s } })
}

func (g *governed) findings() []audit.Finding { return g.ledger.last().Findings }

func TestSecretsInResults(t *testing.T) {
	t.Parallel()
	g := newScanned(t, secretscan.Rules{})
	half := len(token) / 2
	g.backend.answer = func() (*abi.Response, error) {
		return &abi.Response{
			Content: []abi.Content{
				{Type: abi.Text, Text: "use " + token}, {Type: abi.Text, Text: "or " + token[:half]}, {Type: abi.Text,
					Text: token[half:] + " now"},
				{Type: abi.Image, MIMEType: "image/png", Data: []byte(token)}, {Type: abi.Embedded,
					Resource: &abi.ResourceContents{URI: "x:" + token, Text: token}},
				{Type: abi.ResourceLink, URI: "https://x/?t=" + token, Name: token, Title: token, Description: "with " + token},
			},
			StructuredContent: json.RawMessage(`{"n":1.50,"deep":[{"token":"` + token + `"}]}`),
		}, nil
	}
	result, err := g.tool(t, "p_loose", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Response
	for i, want := range map[int]string{0: "use " + mark, 1: "or " + mark, 2: mark + " now"} {
		if r.Content[i].Text != want {
			t.Errorf("text %d: %q", i, r.Content[i].Text)
		}
	}
	if got := string(r.StructuredContent); got != `{"n":1.50,"deep":[{"token":"`+mark+`"}]}` {
		t.Errorf("structured %s", got)
	}
	if r.Content[4].Resource.Text != mark || string(r.Content[3].Data) != token {
		t.Errorf("resource %q, image %q", r.Content[4].Resource.Text, r.Content[3].Data)
	}
	if link := r.Content[5]; link.URI != "https://x/?t="+mark || link.Name != mark || link.Title != mark ||
		link.Description != "with "+mark || r.Content[4].Resource.URI != "x:"+mark {
		t.Errorf("link %+v, resource %q", link, r.Content[4].Resource.URI)
	}
	if f := g.findings(); len(f) != 1 || f[0] != (audit.Finding{Rule: "github-pat", Place: "results", Action: "mask"}) {
		t.Errorf("recorded %v", f)
	}
	// The text of a tool error and the error of a backend reach the model too.
	g.backend.answer = func() (*abi.Response, error) {
		return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: "bad token " + token}}}, nil
	}
	if result, err := g.tool(t, "p_loose", `{}`); err != nil || result.Response.Content[0].Text != "bad token "+mark {
		t.Errorf("a failing tool: %v, %+v", err, result)
	}
	g.backend.answer = func() (*abi.Response, error) {
		return &abi.Response{Error: &abi.Error{Code: abi.CodeNetwork, Message: "GET https://x/?t=" + token}}, nil
	}
	if result, err := g.tool(t, "p_loose", `{}`); err != nil ||
		!strings.Contains(result.Response.Content[0].Text, mark) || g.observer.last.Outcome != pipeline.ToolError {
		t.Errorf("a backend's error: %v, %+v", err, result)
	}
	_, err = g.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.GetPrompt, Name: "p_ask",
		Arguments: json.RawMessage(`{"topic":"x"}`)}})
	var wire *abi.Error
	if !errors.As(err, &wire) || strings.Contains(wire.Message+err.Error(), token) {
		t.Errorf("a prompt's error: %v", err)
	}
}

// TestSecretsInEveryResponse checks that the values of completions, prompts and resources are masked as results of tools
// are, and that each is recorded.
func TestSecretsInEveryResponse(t *testing.T) {
	t.Parallel()
	g := newScanned(t, secretscan.Rules{})
	meta := json.RawMessage(`{"k":["` + token + `"]}`)
	for name, test := range map[string]struct {
		request  abi.Request
		response abi.Response
	}{
		"completion": {
			abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "p_ask"}, Argument: &abi.Argument{Name: "topic"}},
			abi.Response{Completion: &abi.Completion{Values: []string{"a", token, "https://x/?t=" + token, "bearer " + token}}}},
		"prompt": {
			abi.Request{Method: abi.GetPrompt, Name: "p_ask", Arguments: json.RawMessage(`{"topic":"x"}`)},
			abi.Response{Description: "with " + token, Messages: []abi.PromptMessage{
				{Role: "user", Content: abi.Content{Type: abi.Text, Text: "use " + token}},
				{Role: "user", Content: abi.Content{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "x:" + token, Text: token}}}}}},
		"resource": {
			abi.Request{Method: abi.ReadResource, URI: "test://fixed"},
			abi.Response{Contents: []abi.ResourceContents{{URI: "test://fixed?t=" + token, MIMEType: "text/" + token, Text: "key=" + token}}}},
		"types and annotations in a tool's result": {
			abi.Request{Method: abi.CallTool, Name: "p_loose", Arguments: json.RawMessage(`{}`)},
			abi.Response{Content: []abi.Content{{Type: abi.Image, MIMEType: "image/" + token,
				Annotations: &abi.Annotations{Audience: []string{"user", token}, LastModified: token}},
				{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "x:y", MIMEType: token}}}}},
		"metadata": {
			abi.Request{Method: abi.CallTool, Name: "p_loose", Arguments: json.RawMessage(`{}`)},
			abi.Response{Meta: meta, Content: []abi.Content{{Type: abi.Text, Text: "x", Meta: meta},
				{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "x:y", Meta: meta}}}}},
		"metadata of a resource": {
			abi.Request{Method: abi.ReadResource, URI: "test://fixed"},
			abi.Response{Contents: []abi.ResourceContents{{URI: "test://fixed", Text: "x", Meta: meta}}}},
	} {
		g.backend.answer = func() (*abi.Response, error) { return &test.response, nil }
		result, err := g.Call(t.Context(), &pipeline.Call{Request: test.request})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := json.Marshal(result.Response)
		got = append(got, result.Response.Meta...) // which the encoding has no place for
		for _, c := range result.Response.Content {
			if got = append(got, c.Meta...); c.Resource != nil {
				got = append(got, c.Resource.Meta...)
			}
		}
		for _, c := range result.Response.Contents {
			got = append(got, c.Meta...)
		}
		if err != nil || strings.Contains(string(got), token[4:]) || !strings.Contains(string(got), mark) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if f := g.findings(); len(f) != 1 || f[0].Action != "mask" {
			t.Errorf("%s: recorded %v", name, f)
		}
	}
}

func TestSecretsInArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action  secretscan.Action
		outcome pipeline.Outcome
		passed  string // the arguments of the tool
		text    string
	}{
		{"", pipeline.OK, token, "fine"},
		{secretscan.Mask, pipeline.OK, mark, "fine"},
		{secretscan.Refuse, pipeline.NotAllowed, "", "Do not pass secrets to tools"},
		{secretscan.Ignore, pipeline.OK, token, "fine"},
	} {
		g := newScanned(t, secretscan.Rules{Arguments: test.action})
		result, err := g.tool(t, "p_loose", `{"n":1,"text":"`+token+`"}`)
		if err != nil || result.Outcome != test.outcome ||
			!strings.Contains(result.Response.Content[0].Text, test.text) {
			t.Errorf("%q: %v, %+v", test.action, err, result)
		}
		if !strings.Contains(string(g.backend.last.Arguments), test.passed) || test.passed == "" &&
			g.backend.last.Name != "" {
			t.Errorf("%q: passed %s", test.action, g.backend.last.Arguments)
		}
		if got := len(g.findings()); got != 1 && test.action != secretscan.Ignore {
			t.Errorf("%q: %d findings", test.action, got)
		}
	}
}

// TestWithheld checks that a result with a secret can be refused as a whole.
func TestWithheld(t *testing.T) {
	t.Parallel()
	g := newScanned(t, secretscan.Rules{Results: secretscan.Refuse})
	g.backend.answer = func() (*abi.Response, error) { return text("use " + token), nil }
	result, err := g.tool(t, "p_loose", `{}`)
	if err != nil || result.Outcome != pipeline.NotAllowed ||
		!strings.Contains(result.Response.Content[0].Text, "(github-pat), so it is withheld") ||
		strings.Contains(result.Response.Content[0].Text, token) {
		t.Errorf("%v, %+v", err, result)
	}
	if f := g.findings(); len(f) != 1 || f[0].Action != "refuse" {
		t.Errorf("recorded %v", f)
	}
}

// TestSecretsAreHidden checks that neither approvers nor the audit log see a secret, also if the tool gets it.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, func(o *pipeline.Options) {
		o.Scanner = secretscan.Default
		o.AuditFields = map[string][]string{"p_loose": {"text"}}
	})
	if _, err := g.tool(t, "p_loose", `{"n":11,"text":"`+token+`"}`); err != nil {
		t.Fatal(err)
	}
	if q := g.people.asked[0]; string(q.Arguments) != `{"n":11,"text":"`+mark+`"}` ||
		strings.Contains(q.Text("en"), token) || q.Hidden == "" {
		t.Errorf("asked %+v", q)
	}
	if got := string(g.ledger.last().Arguments); strings.Contains(got, token) || !strings.Contains(got, mark) {
		t.Errorf("recorded %s", got)
	}
	if !strings.Contains(string(g.backend.last.Arguments), token) {
		t.Error("the tool did not get it")
	}
}
