package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestFinder: where a catalog passes the limit, callers are listed two tools with which they find and call the others,
// and a call through call_tool is a call of the tool to policy, people and records.
func TestFinder(t *testing.T) {
	t.Parallel()
	config := &toolset.Config{
		Search: toolset.Search{Tools: 2},
		Sets: map[string]*toolset.Set{
			"pinned": {Tools: []toolset.Tool{{Pattern: "p_free", Rename: "count", Pin: true}, {Pattern: "*"}}},
			"small":  {Tools: []toolset.Tool{{Pattern: "p_free"}, {Pattern: "p_loose"}}},
		},
		Rules: []toolset.Rule{
			{Frontends: []string{"slack"}, Set: "pinned"}, {Frontends: []string{"agent"}, Set: "small"},
		},
	}
	g := newGoverned(t, func(o *pipeline.Options) { o.Toolsets = config })
	by := pipeline.Caller{Frontend: "terminal", User: "aki"}
	for name, asks := range map[string]bool{"call_tool": true, "find_tools": false} {
		if tool, ok := g.View(by).Tool(name); !ok || g.MayAsk(by, tool) != asks {
			t.Errorf("a call of %s may ask people: %v", name, !asks)
		}
	}
	for frontend, want := range map[string][]string{
		"terminal": {"call_tool", "find_tools"},
		"slack":    {"call_tool", "count", "find_tools"},
		"agent":    {"p_free", "p_loose"},
	} {
		var names []string
		for _, tool := range g.View(pipeline.Caller{Frontend: frontend}).Tools {
			names = append(names, tool.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s is listed %v, want %v", frontend, names, want)
		}
		all := map[string]int{"terminal": 2, "slack": 2}[frontend] // for the finder's two
		view := g.View(pipeline.Caller{Frontend: frontend})
		if n := len(view.Tools) - all + len(view.Deferred); frontend != "agent" && n != len(g.catalog.View().Tools) ||
			frontend == "agent" && view.Deferred != nil {
			t.Errorf("%s has %d tools and %d deferred ones", frontend, len(view.Tools), len(view.Deferred))
		}
		for _, tool := range view.Deferred {
			if slices.Contains(want, tool.Name) {
				t.Errorf("%s is listed and deferred for %s", tool.Name, frontend)
			}
		}
	}
	call := func(by pipeline.Caller, name, arguments string) (string, error) {
		result, err := g.Call(t.Context(), &pipeline.Call{Caller: by,
			Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}})
		if err != nil {
			return "", err
		}
		return result.Response.Content[0].Text, nil
	}
	for _, query := range []string{"p_fre", "free_p", "freeP"} {
		found, err := call(by, "find_tools", `{"query":"`+query+`"}`)
		if err != nil || !strings.Contains(found, "tools.p_free(args:") {
			t.Errorf("%s: found %q, %v", query, found, err)
		}
	}
	if all, err := call(by, "find_tools", `{"query":"","limit":50}`); err != nil || strings.Contains(all, "p_strict") ||
		strings.Contains(all, "call_tool(") || !strings.Contains(all, "tools.p_loose(") {
		t.Errorf("all tools: %q, %v", all, err)
	}
	if e := g.ledger.last(); e.Target.Name != "find_tools" || e.Target.Plugin != "hako.finder" {
		t.Errorf("recorded: %+v", e.Target)
	}
	if text, err := call(by, "call_tool", `{"name":"p_free","arguments":{"n":11}}`); err != nil || text != "fine" {
		t.Fatalf("a call: %q, %v", text, err)
	}
	if asked := g.people.asked[0]; asked.Tool != "p_free" || string(asked.Arguments) != `{"n":11}` {
		t.Errorf("a person was asked about %s %s", asked.Tool, asked.Arguments)
	}
	if e := g.ledger.last(); e.Target.Name != "p_free" || e.Target.Plugin != "test" {
		t.Errorf("recorded: %+v", e.Target)
	}
	if text, err := call(by, "p_free", `{"n":1}`); err != nil || text != "fine" {
		t.Errorf("a call by its own name: %q, %v", text, err)
	}
	var denied *pipeline.NotAllowedError
	if _, err := call(by, "call_tool", `{"name":"p_strict"}`); !errors.As(err, &denied) || denied.Name != "p_strict" {
		t.Errorf("a denied call: %v", err)
	}
	var missing *pipeline.NotFoundError
	if _, err := call(by, "call_tool", `{"name":"p_fre"}`); !errors.As(err, &missing) || missing.Near[0] != "p_free" {
		t.Errorf("an unknown tool: %v", err)
	}
	for arguments, want := range map[string]string{
		`{"name":"call_tool","arguments":{}}`:          "call_tool cannot call itself",
		`{}`:                                           "name: is missing",
		`{"name":"p_free","arguments":[1]}`:            "arguments",
		`{"name":"p_free","name":"p_strict"}`:          "the key occurs twice",
		`{"name":"p_free","arguments":{"n":"eleven"}}`: "p_free are not valid",
	} {
		if text, err := call(by, "call_tool", arguments); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", arguments, text, err)
		}
	}
	permitted := false
	if _, err := g.Call(t.Context(), &pipeline.Call{Caller: by,
		Request:   abi.Request{Method: abi.CallTool, Name: "find_tools", Arguments: json.RawMessage(`{"query":"x"}`)},
		Permitted: func(context.Context) error { permitted = true; return nil }}); err != nil || !permitted {
		t.Errorf("a search is not announced as other calls are: %v", err)
	}
	by.Frontend = "agent"
	if _, err := call(by, "call_tool", `{"name":"p_free"}`); !errors.As(err, &missing) || missing.Name != "call_tool" {
		t.Errorf("where all tools are listed: %v", err)
	}
}

// TestFinderByTokens: the limit can be in tokens.
func TestFinderByTokens(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, nil)
	for tokens, searched := range map[int]bool{1: true, 1 << 20: false} {
		g.Set(pipeline.Settings{Toolsets: &toolset.Config{Search: toolset.Search{Tokens: tokens}}})
		if _, ok := g.View(pipeline.Caller{Frontend: "terminal"}).Tool("call_tool"); ok != searched {
			t.Errorf("with a limit of %d tokens: searched %v", tokens, ok)
		}
	}
}

// TestFinderIsLimited: searches count for quotas as other calls do.
func TestFinderIsLimited(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, func(o *pipeline.Options) {
		o.Toolsets = &toolset.Config{Search: toolset.Search{Tools: 1}}
		o.Governance.Quotas = quota.New([]quota.Rule{{Name: "one", Rate: 1}}, nil)
	})
	g.tool(t, "find_tools", `{"query":"free"}`)
	result, err := g.tool(t, "find_tools", `{"query":"free"}`)
	if err != nil || !result.Response.IsError || g.observer.last.Quota != "one" {
		t.Errorf("a second search: %+v, %v", result, err)
	}
}
