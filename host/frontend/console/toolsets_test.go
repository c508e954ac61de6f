package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
)

// offeredSets are sets with all that the page shows.
func offeredSets() *toolset.Config {
	return &toolset.Config{
		Sets: map[string]*toolset.Set{
			"support": {
				Name: "support", Description: "For the help desk", For: &toolset.People{Groups: []string{"support"}},
				Tools: []toolset.Tool{
					{Pattern: "file_read", Rename: "read_manual", Pin: true, Hide: []string{"offset"},
						Fix: map[string]json.RawMessage{"path": json.RawMessage(`"manuals/support.md"`)}},
					{Pattern: "ticket_*"}, {Pattern: "gone_*"},
				},
			},
			"few": {Name: "few", Tools: []toolset.Tool{{Pattern: "ticket_add"}}},
		},
		Rules: []toolset.Rule{{People: toolset.People{Tenants: []string{"acme"}}, Frontends: []string{"slack"}, Set: "support"}},
		Local: "few", Search: toolset.Search{Tools: 3},
	}
}

// offering is a world with these sets, and a catalog for them.
func offering(t testing.TB, sets *toolset.Config) *world {
	w := newWorld(t, func(_ *world, o *console.Options) { o.Settings = settings{toolsets: sets} })
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"}},"required":["path"]}`)
	w.offer("files", echo, manifest.Tool{Name: "file_read", InputSchema: schema})
	w.offer("tickets", echo, manifest.Tool{Name: "ticket_add"}, manifest.Tool{Name: "ticket_close"})
	return w
}

type shownSet struct {
	Name, Description, YAML, Current          string
	Tools, Tokens, Listed, ListedTokens, More int
	Search                                    bool
	Problems                                  []string
	For                                       *toolset.People
	Set                                       *toolset.Set
	Next                                      string
	Items                                     []struct {
		Name, Tool, Plugin string
		Tokens             int
		Pinned             bool
		Hidden             []string
		Fixed              []struct{ Name, Value string }
	}
}

// TestToolsets: the page shows each set with what it offers, costs and leaves out, and who is offered it.
func TestToolsets(t *testing.T) {
	t.Parallel()
	w := offering(t, offeredSets())
	b := w.as(console.Viewer)
	var list struct {
		Items   []shownSet
		Catalog shownSet
		Local   string
		Search  toolset.Search
		Rules   []toolset.Rule
	}
	b.get("toolsets").into(t, &list)
	own := list.Catalog.Tools - 3
	if len(list.Items) != 2 || list.Local != "few" || list.Search.Tools != 3 || len(list.Rules) != 1 ||
		list.Rules[0].Set != "support" || list.Rules[0].Tenants[0] != "acme" {
		t.Errorf("%+v", list)
	}
	view, sum := w.host.Catalog().View(), 0
	for _, tool := range view.Tools {
		sum += toolset.Tokens(tool)
	}
	if list.Catalog.Tokens != sum || list.Catalog.Search != (own > 0) {
		t.Errorf("the catalog: %+v, want %d tokens", list.Catalog, sum)
	}
	support := list.Items[1]
	if support.Name != "support" || support.Tools != 3+own || support.Description != "For the help desk" ||
		support.For.Groups[0] != "support" || len(support.Problems) != 1 || !strings.Contains(support.Problems[0], "gone_*") {
		t.Errorf("%+v", support)
	}
	b.get("toolsets?limit=1").into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "few" {
		t.Errorf("the first page: %+v", list.Items)
	}
}

// TestToolsetSearch: above the limit the page has what is listed in place of the tools.
func TestToolsetSearch(t *testing.T) {
	t.Parallel()
	sets := offeredSets()
	sets.Search = toolset.Search{Tools: 1}
	var got shownSet
	offering(t, sets).as(console.Viewer).get("toolsets/support").into(t, &got)
	// What stays is what is pinned, read_manual, beside find_tools and call_tool.
	if !got.Search || got.Listed != 3 || got.ListedTokens <= 0 || got.ListedTokens == got.Tokens {
		t.Errorf("%+v", got)
	}
}

// TestToolset: one set with its tools by their offered names. Only admins see the values of fixed arguments.
func TestToolset(t *testing.T) {
	t.Parallel()
	w := offering(t, offeredSets())
	for _, role := range console.Roles {
		var got shownSet
		w.as(role).get("toolsets/support").into(t, &got)
		found := false
		for _, tool := range got.Items {
			if tool.Name != "read_manual" {
				continue
			}
			found = true
			value := ""
			if role == console.Admin {
				value = `"manuals/support.md"`
			}
			if tool.Tool != "file_read" || tool.Plugin != "files" || !tool.Pinned || tool.Hidden[0] != "offset" ||
				tool.Fixed[0].Name != "path" || tool.Fixed[0].Value != value || tool.Tokens == 0 {
				t.Errorf("as %s: %+v", role, tool)
			}
		}
		if !found || (got.Set != nil) != (role == console.Admin) {
			t.Errorf("as %s: %+v", role, got)
		}
	}
	b := w.as(console.Viewer)
	var all shownSet
	b.get("toolsets/all").into(t, &all)
	if all.Name != "all" || all.Tools != len(w.host.Catalog().View().Tools) || len(all.Items) != all.Tools {
		t.Errorf("everything: %+v", all)
	}
	if a := b.get("toolsets/nothing"); a.status != http.StatusNotFound {
		t.Errorf("an unknown set: %d %s", a.status, a.body)
	}
	if a := b.get("toolsets/support?limit=0"); a.status != http.StatusBadRequest {
		t.Errorf("a wrong limit: %d %s", a.status, a.body)
	}
	none := offering(t, nil).as(console.Viewer)
	if a := none.get("toolsets"); a.status != http.StatusOK || !strings.Contains(a.body, `"items":[]`) {
		t.Errorf("without toolsets: %d %s", a.status, a.body)
	}
}

// TestToolsetPreview: a draft becomes YAML for hako.yaml, with what it would offer. The sets in force stay as they are.
func TestToolsetPreview(t *testing.T) {
	t.Parallel()
	sets := offeredSets()
	w := offering(t, sets)
	b := w.as(console.Admin)
	var got shownSet
	b.post("toolsets/preview", map[string]any{
		"name": "few", "for": map[string]any{},
		"tools": []any{map[string]any{"tool": "file_read", "fix": map[string]any{"path": "日本.md"}, "pin": true},
			map[string]any{"tool": "nothing"}},
	}).into(t, &got)
	want := "toolsets:\n  sets:\n    few:\n      tools:\n        - tool: file_read\n          fix:\n            path: 日本.md\n" +
		"          pin: true\n        - nothing\n"
	if got.YAML != want || !strings.Contains(got.Current, "- ticket_add") {
		t.Errorf("%s\nand now %s", got.YAML, got.Current)
	}
	if len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "nothing matches no tool") || got.Items[0].Name != "file_read" {
		t.Errorf("%+v", got)
	}
	if len(sets.Set("few").Tools) != 1 || strings.Contains(w.records(), "toolset") {
		t.Errorf("a preview changed something: %+v, %s", sets.Set("few"), w.records())
	}
}

// TestWrongToolsetPreview: what hako.yaml would refuse, and what is too much, is refused by the field of the form.
func TestWrongToolsetPreview(t *testing.T) {
	t.Parallel()
	w := offering(t, offeredSets())
	b := w.as(console.Admin)
	entry := func(more map[string]any) map[string]any {
		draft := map[string]any{"tool": "x"}
		for key, value := range more {
			draft[key] = value
		}
		return map[string]any{"name": "a", "tools": []any{draft}}
	}
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	many := make([]any, 300)
	for i := range many {
		many[i] = map[string]any{"tool": fmt.Sprint("t", i)}
	}
	for name, test := range map[string]struct {
		body        any
		field, want string
	}{
		"a name":       {map[string]any{"name": "All", "tools": []any{map[string]any{"tool": "x"}}}, "name", "part of a URL"},
		"all":          {map[string]any{"name": "all", "tools": []any{map[string]any{"tool": "x"}}}, "name", "means all tools"},
		"no tools":     {map[string]any{"name": "a"}, "tools", "at least one"},
		"a rename":     {entry(map[string]any{"tool": "x*", "rename": "y"}), "tools.0", "rename is for one"},
		"fix and hide": {entry(map[string]any{"fix": map[string]any{"b": 1}, "hide": []string{"b"}}), "tools.0", "is in fix"},
		"deep":         {entry(map[string]any{"fix": map[string]any{"b": json.RawMessage(deep)}}), "tools.0", "nests deeper"},
		"a long name":  {entry(map[string]any{"tool": strings.Repeat("x*", 200)}), "tools.0", "longer than"},
		"many":         {map[string]any{"name": "a", "tools": many}, "tools", "at most 200"},
		"people": {map[string]any{"name": "a", "tools": []any{map[string]any{"tool": "x"}},
			"for": map[string]any{"groups": []string{strings.Repeat("g", 300)}}}, "groups", "longer than"},
	} {
		a := b.post("toolsets/preview", test.body)
		var body struct {
			Error struct{ Fields map[string]string }
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		if a.status != http.StatusBadRequest || !strings.Contains(body.Error.Fields[test.field], test.want) {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	for name, body := range map[string]any{
		"an unknown field": map[string]any{"name": "a", "tool": "x"}, "no JSON": "{", "a list": "[]",
		"twice": `{"name":"a","name":"b","tools":[{"tool":"x"}]}`,
	} {
		if a := b.post("toolsets/preview", body); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	if a := b.post("toolsets/preview", `{"name":"`+strings.Repeat("a", 70<<10)+`"}`); a.code() != "too_large" {
		t.Errorf("large: %d %.300s", a.status, a.body)
	}
	for _, role := range []console.Role{console.Viewer, console.Approver} {
		if a := w.as(role).post("toolsets/preview", entry(nil)); a.status != http.StatusForbidden {
			t.Errorf("as %s: %d %s", role, a.status, a.body)
		}
	}
	b.csrf = "wrong"
	if a := b.post("toolsets/preview", entry(nil)); a.code() != "csrf" {
		t.Errorf("without the token of the session: %d %s", a.status, a.body)
	}
}

// TestRulesPreview: drafted rules become YAML for hako.yaml, and those that decide about nobody are named.
func TestRulesPreview(t *testing.T) {
	t.Parallel()
	w := offering(t, offeredSets())
	b := w.as(console.Admin)
	rule := func(set string, more ...any) map[string]any {
		r := map[string]any{"toolset": set}
		for i := 0; i < len(more); i += 2 {
			r[more[i].(string)] = more[i+1]
		}
		return r
	}
	draft := func(rules ...any) any { return map[string]any{"rules": rules} }
	var got struct {
		YAML, Current string
		Unreachable   []struct{ Rule, By int }
	}
	b.post("toolsets/rules/preview", draft(
		rule("support", "groups", []string{"help desk"}, "frontends", []string{"slack", "mcp-http"}),
		rule("few", "groups", []string{"help desk"}, "frontends", []string{"slack"}, "users", []string{"ken"}),
		rule("few", "frontends", []string{"slack"}), rule("all"), rule("few"),
	)).into(t, &got)
	want := "toolsets:\n  rules:\n    - groups: [help desk]\n      frontends: [slack, mcp-http]\n      toolset: support\n"
	if !strings.HasPrefix(got.YAML, want) || !strings.HasSuffix(got.YAML, "    - toolset: all\n    - toolset: few\n") {
		t.Error(got.YAML)
	}
	if !strings.Contains(got.Current, "tenants: [acme]") {
		t.Errorf("now there is %q", got.Current)
	}
	if fmt.Sprint(got.Unreachable) != "[{2 1} {5 4}]" {
		t.Errorf("decide about nobody: %v", got.Unreachable)
	}
	for name, test := range map[string]struct {
		body        any
		field, want string
	}{
		"none":       {draft(), "rules", "there is no rule"},
		"many":       {map[string]any{"rules": slices.Repeat([]any{rule("all")}, 201)}, "rules", "at most 200"},
		"no set":     {draft(rule("all"), rule("")), "rules.1", `unknown toolset ""`},
		"a set":      {draft(rule("suport")), "rules.0", `did you mean "support"?`},
		"a frontend": {draft(rule("all", "frontends", []string{"slak"})), "rules.0", `did you mean "slack"?`},
		"long":       {draft(rule("all", "users", []string{strings.Repeat("u", 300)})), "rules.0", "longer than"},
		"many names": {draft(rule("all", "users", slices.Repeat([]string{"u"}, 201))), "rules.0", "at most 200"},
	} {
		a := b.post("toolsets/rules/preview", test.body)
		var body struct {
			Error struct{ Fields map[string]string }
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		if a.status != http.StatusBadRequest || !strings.Contains(body.Error.Fields[test.field], test.want) {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	if a := b.post("toolsets/rules/preview?lang=ja", draft(rule("suport"))); !strings.Contains(a.body, "の誤りではありませんか") {
		t.Errorf("in Japanese: %s", a.body)
	}
	for name, body := range map[string]string{
		"an unknown field": `{"rules":[{"toolset":"all","set":"all"}]}`, "twice": `{"rules":[],"rules":[]}`, "a list": `[]`, "text": `{"rules":"all"}`,
	} {
		if a := b.post("toolsets/rules/preview", body); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
}
