package pipeline_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// shaped gives the tool p_free to callers in Slack as "count", with n fixed, p_strict as "careful", and nothing else.
func shaped() *toolset.Config {
	return &toolset.Config{
		Sets: map[string]*toolset.Set{"few": {Name: "few", Prompts: []string{"*"}, Tools: []toolset.Tool{
			{Pattern: "p_free", Rename: "count", Fix: map[string]json.RawMessage{"n": json.RawMessage("11")}},
			{Pattern: "p_strict", Rename: "careful"},
		}}},
		Rules: []toolset.Rule{{Frontends: []string{"slack"}, Set: "few"}},
	}
}

// TestToolset: a caller with a toolset calls tools by the names in it, and policy, approvals and audit see the catalog's
// names and whole arguments.
func TestToolset(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, func(o *pipeline.Options) { o.Toolsets = shaped() })
	by := pipeline.Caller{Frontend: "slack", User: "aki"}
	call := func(by pipeline.Caller, name, arguments string) (*pipeline.Result, error) {
		return g.Call(t.Context(), &pipeline.Call{Caller: by,
			Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}})
	}
	if _, err := call(by, "count", `{}`); err != nil {
		t.Fatal(err)
	}
	if string(g.backend.last.Arguments) != `{"n":11}` || g.backend.last.Name != "free" {
		t.Errorf("the tool got %s %s", g.backend.last.Name, g.backend.last.Arguments)
	}
	asked := g.people.asked[0]
	if asked.Tool != "p_free" || string(asked.Arguments) != `{"n":11}` {
		t.Errorf("a person was asked about %s %s", asked.Tool, asked.Arguments)
	}
	if e := g.ledger.last(); e.Target.Name != "p_free" || e.Subject.Toolset != "few" {
		t.Errorf("recorded: %+v %+v", e.Target, e.Subject)
	}
	for _, none := range []string{`{}`, ``} { // both are the tool's {"n":11}
		_, err := call(by, "count", none)
		if e := g.ledger.last(); err != nil || e.InputBytes != len(`{"n":11}`) ||
			string(e.Arguments) != `{"digest":"`+g.ledger.Digest([]byte(`{"n":11}`))+`","n":11}` {
			t.Errorf("%q is recorded as %s of %d bytes: %v", none, e.Arguments, e.InputBytes, err)
		}
	}
	result, err := call(by, "count", `{"n":1}`)
	if err != nil || !result.Response.IsError || !strings.Contains(result.Response.Content[0].Text, `count are not valid: the caller may not set "n"`) {
		t.Errorf("a fixed argument that was given: %+v, %v", result, err)
	}
	var denied *pipeline.NotAllowedError
	if _, err := call(by, "careful", `{}`); !errors.As(err, &denied) || denied.Name != "careful" {
		t.Errorf("a denied call: %v", err)
	}
	for _, name := range []string{"p_free", "p_loose", "p_old", "waiting"} {
		var missing *pipeline.NotFoundError
		if _, err := call(by, name, `{}`); !errors.As(err, &missing) || missing.Hint != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	var missing *pipeline.NotFoundError
	if _, err := call(by, "counts", `{}`); !errors.As(err, &missing) || strings.Join(missing.Near, " ") != "count" {
		t.Errorf("near names: %v", err)
	}
	if _, err := g.Call(t.Context(), &pipeline.Call{Caller: by,
		Request: abi.Request{Method: abi.ReadResource, URI: "test://fixed"}}); !errors.As(err, &missing) {
		t.Errorf("a resource outside: %v", err)
	}
	by.Toolset = toolset.All
	if _, err := call(by, "p_loose", `{}`); err != nil {
		t.Errorf("with everything: %v", err)
	}
	by.Toolset = "gone"
	if _, err := call(by, "count", `{}`); !errors.As(err, &missing) || len(g.View(by).Tools) != 0 {
		t.Errorf("with an unknown toolset: %v", err)
	}
	if view := g.View(pipeline.Caller{Frontend: "terminal"}); view != g.catalog.View() {
		t.Error("a caller without a rule has another view than the catalog's")
	}
}

// TestToolsetsChange: settings that change apply to the next call.
func TestToolsetsChange(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	by := pipeline.Caller{Frontend: "slack"}
	if g.View(by).Selected {
		t.Fatal("a selection without toolsets")
	}
	g.Set(pipeline.Settings{Toolsets: shaped()})
	if _, ok := g.View(by).Tool("count"); !ok {
		t.Error("the toolset does not apply")
	}
}
