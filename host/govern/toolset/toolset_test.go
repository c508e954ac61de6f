package toolset_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
)

const plugins = `name: tickets
version: 1.0.0
tools:
  - name: ticket_search
    description: Searches tickets. Give words, and a project to search in.
    inputSchema:
      type: object
      properties: {words: {type: string}, project: {type: string}, limit: {type: integer}}
      required: [words, project]
      additionalProperties: false
  - {name: ticket_close, description: Closes a ticket., inputSchema: {type: object, properties: {id: {type: string}}, required: [id]}}
  - name: ticket_add
    description: {en: Adds a ticket. It notifies people., ja: チケットを追加します。通知されます。}
    inputSchema:
      type: object
      properties: {ID: {type: string}, id: {type: string}}
      oneOf: [{required: [ID]}, {required: [id]}]
resources: [{uri: 'tickets://open', name: open}]
resourceTemplates: [{uriTemplate: 'tickets://{id}', name: one}]
prompts: [{name: triage, description: d}, {name: report, description: d}]
`

func tickets(t testing.TB) *catalog.View {
	t.Helper()
	m, err := manifest.Parse([]byte(plugins))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: "tickets"}, m); err != nil {
		t.Fatal(err)
	}
	return c.View()
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func TestApply(t *testing.T) {
	t.Parallel()
	search := func(change func(*toolset.Tool)) []toolset.Tool {
		entry := toolset.Tool{Pattern: "ticket_search"}
		change(&entry)
		return []toolset.Tool{entry}
	}
	for name, test := range map[string]struct {
		set      toolset.Set
		want     string // offered names
		schema   string // of the first tool
		problems string // words in them; empty: there are none
	}{
		"nothing": {set: toolset.Set{}},
		"everything": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "*"}}, Resources: []string{"*"}, Prompts: []string{"*"}},
			want: "ticket_add ticket_close ticket_search tickets://open tickets://{id} report triage"},
		"of a plugin, except one": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "tickets/*"}}, Except: []string{"*_close"}},
			want: "ticket_add ticket_search"},
		"renamed": {set: toolset.Set{Tools: search(func(e *toolset.Tool) { e.Rename = "search" })}, want: "search"},
		"fixed": {set: toolset.Set{Tools: search(func(e *toolset.Tool) { e.Fix = map[string]json.RawMessage{"project": raw(`"A"`)} })},
			want: "ticket_search",
			schema: `{"type":"object","properties":{"words":{"type":"string"},"limit":{"type":"integer"}},` +
				`"required":["words"],"additionalProperties":false}`},
		"hidden": {set: toolset.Set{Tools: search(func(e *toolset.Tool) { e.Hide = []string{"limit"} })}, want: "ticket_search",
			schema: `{"type":"object","properties":{"words":{"type":"string"},"project":{"type":"string"}},` +
				`"required":["words","project"],"additionalProperties":false}`},
		"fixed under a composition": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "ticket_add",
			Fix: map[string]json.RawMessage{"ID": raw(`"1"`)}}}}, want: "ticket_add",
			schema: `{"properties":{"id":{"type":"string"}},"type":"object"}`},
		"a required argument hidden": {set: toolset.Set{Tools: search(func(e *toolset.Tool) { e.Hide = []string{"words"} })},
			problems: "ticket_search is left out: it requires the argument words"},
		"an argument that is not there": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "ticket_*",
			Fix: map[string]json.RawMessage{"project": raw(`"A"`)}}}}, want: "ticket_search",
			problems: "ticket_close is left out: it has no argument project"},
		"a name that is taken": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "ticket_add", Rename: "ticket_close"}, {Pattern: "*"}}},
			want: "ticket_close ticket_search", problems: "ticket_close is left out: ticket_add is offered as ticket_close"},
		"what matches nothing": {set: toolset.Set{Tools: []toolset.Tool{{Pattern: "gone"}}, Except: []string{"e*"}, Resources: []string{"r"},
			Prompts: []string{"p"}}, problems: "gone matches no tool|e* matches no tool|r matches no resource|p matches no prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := test.set.Apply(tickets(t))
			if got := names(v); got != test.want {
				t.Errorf("offered: %q, want %q", got, test.want)
			}
			if test.schema != "" && string(v.Tools[0].Spec.InputSchema) != test.schema {
				t.Errorf("schema: %s\nwant %s", v.Tools[0].Spec.InputSchema, test.schema)
			}
			all := strings.Join(v.Problems, "\n")
			for _, want := range strings.Split(test.problems, "|") {
				if !strings.Contains(all, want) || test.problems == "" && all != "" {
					t.Errorf("problems: %q, want %q", all, want)
				}
			}
		})
	}
}

func names(v *toolset.View) string {
	var list []string
	for _, tool := range v.Tools {
		list = append(list, tool.Name)
	}
	for _, resource := range v.Resources {
		list = append(list, resource.Spec.URI)
	}
	for _, template := range v.Templates {
		list = append(list, template.Spec.URITemplate)
	}
	for _, prompt := range v.Prompts {
		list = append(list, prompt.Name)
	}
	return strings.Join(list, " ")
}

// TestDescriptions: an entry replaces or shortens a description in each language, and leaves the catalog's as it is.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	view := tickets(t)
	set := toolset.Set{Tools: []toolset.Tool{{Pattern: "ticket_add", Short: true},
		{Pattern: "ticket_close", Short: true, Description: manifest.Text{"en": "Closes."}}}}
	tools := set.Apply(view).Tools
	if d := tools[0].Spec.Description; d["en"] != "Adds a ticket." || d["ja"] != "チケットを追加します。" {
		t.Errorf("shortened: %v", d)
	}
	if d := tools[1].Spec.Description; d["en"] != "Closes." {
		t.Errorf("replaced: %v", d)
	}
	if tools[0].Real() != view.Tools[0] || !strings.Contains(view.Tools[0].Spec.Description["en"], "notifies") {
		t.Error("the catalog's tool is another")
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	set := toolset.Set{Tools: []toolset.Tool{
		{Pattern: "ticket_search", Rename: "search", Hide: []string{"limit"},
			Fix: map[string]json.RawMessage{"project": raw(`{"a": [1]}`)}},
		{Pattern: "ticket_add", Fix: map[string]json.RawMessage{"ID": raw("1")}},
		{Pattern: "*"}}}
	v := set.Apply(tickets(t))
	for _, test := range []struct{ tool, given, want, refused string }{
		{"search", `{}`, `{"project":{"a": [1]}}`, ""},
		{"search", ``, `{"project":{"a": [1]}}`, ""},
		{"search", ` { "words" : "x" } `, `{"project":{"a": [1]}, "words" : "x" } `, ""},
		{"search", `{"words":"x","project":"B"}`, "", "project"},
		{"search", `{"words":"x","\u0070roject":"B"}`, "", "project"},
		{"search", `{"PROJECT":"B"}`, "", "PROJECT"},
		{"search", `{"limit":1}`, "", "limit"},
		{"search", `[]`, `[]`, ""},
		{"search", `{"a":`, `{"a":`, ""},
		{"search", `{} {}`, `{} {}`, ""},
		{"ticket_add", `{"id":"2"}`, `{"ID":1,"id":"2"}`, ""}, // both are the tool's
		{"ticket_add", `{"Id":"2"}`, "", "Id"},
		{"ticket_close", `{"id":"1"}`, `{"id":"1"}`, ""},
		{"ticket_search", `{"project":"B"}`, `{"project":"B"}`, ""}, // is not offered by this name
	} {
		got, err := v.Arguments(test.tool, raw(test.given))
		var refused *toolset.ArgumentError
		if errors.As(err, &refused) != (test.refused != "") || refused != nil && refused.Name != test.refused ||
			string(got) != test.want {
			t.Errorf("%s %s: %s, %v", test.tool, test.given, got, err)
		}
	}
}

// FuzzArguments: whatever a caller sends, a tool gets the fixed value alone under the name, and no hidden argument.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"words":"x"}`, `{"project":1}`, `{"Project":1,"a":{}}`, `{"a":1,"a":2}`, `[1]`, ` {"x":"\ud800"}`, "{\"ct\":1}\v"} {
		f.Add(seed)
	}
	set := toolset.Set{Tools: []toolset.Tool{{Pattern: "ticket_search", Hide: []string{"limit"},
		Fix: map[string]json.RawMessage{"project": raw(`"A"`)}}}}
	v := set.Apply(tickets(f))
	f.Fuzz(func(t *testing.T, given string) {
		got, err := v.Arguments("ticket_search", raw(given))
		if err != nil {
			return
		}
		var before, after map[string]json.RawMessage // numbers may be of any size
		if json.Unmarshal([]byte(given), &before) != nil || before == nil {
			if string(got) != given && given != "" {
				t.Fatalf("%q became %q", given, got)
			}
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q became %q: %v", given, got, err)
		}
		var guest struct{ Project, Limit any } // as a Go guest reads it, whatever the case
		_ = json.Unmarshal(got, &guest)
		if string(after["project"]) != `"A"` || guest.Project != "A" || guest.Limit != nil {
			t.Fatalf("%q became %q", given, got)
		}
		if len(after) != len(before)+1 {
			t.Fatalf("%q became %q", given, got)
		}
	})
}

func TestFor(t *testing.T) {
	t.Parallel()
	c := &toolset.Config{Rules: []toolset.Rule{
		{People: toolset.People{Groups: []string{"admins"}}, Set: toolset.All},
		{Frontends: []string{"slack"}, Channels: []string{"C1"}, Set: "channel"},
		{People: toolset.People{Users: []string{"ken"}, Tenants: []string{"acme"}}, Set: "ken"},
		{People: toolset.People{Tokens: []string{"ci"}}, Set: "ci"},
	}}
	for _, test := range []struct {
		by   toolset.Caller
		want string
	}{
		{toolset.Caller{}, toolset.All},
		{toolset.Caller{User: "ken"}, toolset.All},
		{toolset.Caller{User: "ken", Tenant: "acme"}, "ken"},
		{toolset.Caller{User: "ken", Tenant: "acme", Groups: []string{"x", "admins"}}, toolset.All},
		{toolset.Caller{Frontend: "slack", Channel: "C1", User: "ken", Tenant: "acme"}, "channel"},
		{toolset.Caller{Frontend: "slack", Channel: "C2"}, toolset.All},
		{toolset.Caller{Token: "ci"}, "ci"},
	} {
		if got := c.For(&test.by); got != test.want {
			t.Errorf("%+v: %s, want %s", test.by, got, test.want)
		}
	}
	if got := (*toolset.Config)(nil).For(&toolset.Caller{}); got != toolset.All {
		t.Errorf("without a configuration: %s", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, entry := range []toolset.Tool{
		{}, {Pattern: "a*", Rename: "b"}, {Pattern: "a", Rename: "b c"},
		{Pattern: "a", Hide: []string{"x"}, Fix: map[string]json.RawMessage{"x": raw("1")}},
	} {
		if entry.Check() == nil {
			t.Errorf("accepted: %+v", entry)
		}
	}
	c := &toolset.Config{Sets: map[string]*toolset.Set{"support": {}}}
	for name, words := range map[string]string{"support": "", "all": "", "suport": `did you mean "support"`, "": "toolset"} {
		if err := c.CheckName(name); (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", name, err)
		}
	}
	bad := slices.DeleteFunc([]string{"all", "", "A", "-a", "a/b", strings.Repeat("a", 65)},
		func(name string) bool { return toolset.CheckSetName(name) != nil })
	if len(bad) > 0 {
		t.Errorf("accepted: %q", bad)
	}
}

// TestOwn: what the host itself offers is in every set that does not except it.
func TestOwn(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	if err := results.New(nil).Offer(c); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		set   toolset.Set
		tools int
	}{{toolset.Set{}, 1}, {toolset.Set{Tools: []toolset.Tool{{Pattern: "read_*"}}}, 1}, {toolset.Set{Except: []string{"read_result"}}, 0}} {
		if v := test.set.Apply(c.View()); len(v.Tools) != test.tools || len(v.Templates) != 1 {
			t.Errorf("%+v offers %d tools, %d templates", test.set, len(v.Tools), len(v.Templates))
		}
	}
}
