package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/pdk/locale"
)

var site = &policy.Site{
	Tools: []policy.ToolName{{Name: "file_read", Plugin: "files"}, {Name: "file_write", Plugin: "files"},
		{Name: "delete_row", Plugin: "db"}, {Name: "shell_exec", Plugin: "shell"}},
	Frontends: []string{"mcp-http", "terminal", "slack"}, Tenants: []string{"acme"},
}

func TestLint(t *testing.T) {
	t.Parallel()
	const head = "version: 1\ngroups: {admins: [aki]}\nrules:\n"
	for _, test := range []struct{ name, text, want string }{
		{"all is well", `
  - {name: a, action: deny, tools: ["delete_*", "shell/*", resources/read, "files/resources/*"], frontends: [slack], groups: [admins], tokens: [any]}
  - {name: b, action: ask, tools: [delete_row], approvers: {groups: [admins, others], users: [yuki]}}`, ""},
		{"a rule for everything", "  - {name: a, action: deny}\n  - {name: b, action: allow, tools: [file_read]}",
			`5:5: rules[1]: can never decide, because "a" in line 4 decides all of its calls: move it up, or remove it`},
		{"a pattern within a pattern", "  - {name: a, action: deny, tools: [\"file_*\"]}\n  - {name: b, action: " +
			"allow, tools: [files/file_read], users: [aki]}",
			`5:5: rules[1]: can never decide, because "a" in line 4 decides all of its calls: move it up, or remove it`},
		{"the table below a rule", "  - {name: a, action: deny, tools: [file_read]}\ntool_permissions: " +
			"{file_read: allow}",
			`5:31: tool_permissions.file_read: can never decide, because "a" in line 4 decides all of its calls: move it up, or remove it`},
		{"a name for a pattern", "  - {name: a, action: deny, tools: [file_read]}\n  - {name: b, action: allow, " +
			"tools: [\"file_*\"]}", ""},
		{"other callers", "  - {name: a, action: deny, users: [aki], frontends: [slack]}\n  - {name: b, action: allow, " +
			"users: [aki]}", ""},
		{"a condition", "  - {name: a, action: deny, when: readOnly}\n  - {name: b, action: allow}", ""},
		{"the same condition, denied first", "  - {name: a, action: deny, when: arguments.n > 1}\n  - {name: b, " +
			"action: allow, when: arguments.n > 1}",
			`5:5: rules[1]: can never decide, because "a" in line 4 decides all of its calls: move it up, or remove it`},
		{"the same condition, allowed first: it denies where it cannot be evaluated",
			"  - {name: a, action: allow, when: arguments.n > 1}\n  - {name: b, action: deny, when: arguments.n > 1}",
			""},
		{"a misspelt tool", "  - {name: a, action: deny, tools: [file_raed]}",
			`4:37: rules[0].tools[0]: there is no tool "file_raed": did you mean "file_read"?`},
		{"a misspelt plugin", "  - {name: a, action: deny, tools: [\"shel/*\"]}",
			`4:37: rules[0].tools[0]: unknown plugin "shel": did you mean "shell"?`},
		{"a pattern that nothing fits", "  - {name: a, action: deny, tools: [\"drop_*\"]}",
			`4:37: rules[0].tools[0]: no tool is called "drop_*" now`},
		{"the table", "  []\ntool_permissions: {file_raed: deny}",
			`5:31: tool_permissions.file_raed: there is no tool "file_raed": did you mean "file_read"?`},
		{"a misspelt frontend", "  - {name: a, action: deny, frontends: [slak]}",
			`4:41: rules[0].frontends[0]: unknown frontend "slak": did you mean "slack"?`},
		{"an unknown tenant", "  - {name: a, action: deny, tenants: [zzz]}",
			`4:39: rules[0].tenants[0]: unknown tenant "zzz": known are acme`},
		{"a misspelt group", "  - {name: a, action: ask, groups: [admin], approvers: {groups: [admin], users: [yuki, " +
			"admins]}}", `4:37: rules[0].groups[0]: the policy has no group "admin": did you mean "admins"?
4:66: rules[0].approvers.groups[0]: the policy has no group "admin": did you mean "admins"?
4:88: rules[0].approvers.users[1]: "admins" is the name of a group: write it under groups if its members are meant`},
		{"a group of a token", "  - {name: a, action: deny, groups: [engineering]}", ""},
		{"fewer scopes", "  - {name: a, action: deny, missingScopes: [x, y]}\n  - {name: b, action: deny, " +
			"missingScopes: [y]}",
			`5:5: rules[1]: can never decide, because "a" in line 4 decides all of its calls: move it up, or remove it`},
		{"other scopes", "  - {name: a, action: deny, missingScopes: [x]}\n  - {name: b, action: deny, " +
			"missingScopes: [x, y]}\n  - {name: c, action: deny}", ""},
		{"commands", "  []\ncommands: [{name: a, action: deny, programs: [\"g*\"]}, {name: b, action: allow, " +
			"programs: [git], args: [status]}]",
			`5:55: commands[1]: can never decide, because "a" above it decides all of its commands`},
		{"commands with arguments", "  []\ncommands: [{name: a, action: deny, programs: [git], args: [push]}, {name: " +
			"b, action: allow, programs: [git]}]", ""},
		{"quotas", "  []\nquotas: [{name: a, rate: 5, plugins: [file], tools: [shell_exe]}]",
			`5:39: quotas[0].plugins[0]: unknown plugin "file": did you mean "files"?
5:54: quotas[0].tools[0]: unknown tool "shell_exe": did you mean "shell_exec"?`},
		{"a policy that is none", "  - {name: a}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := policy.Lint([]byte(head+test.text+"\n"), site); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestProspects(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
default: ask
rules:
  - {name: drafts, action: allow, tools: [file_write], when: 'arguments.path.startsWith("drafts/")'}
  - {name: not ken, action: deny, when: 'user == "ken" || arguments.path == "x"'}
  - {name: only slack, action: deny, when: 'frontend == "slack" && arguments.n > 1'}
  - {name: no first group, action: deny, tools: [grouped], when: 'groups[0] == "x"'}
`)
	for _, test := range []struct {
		call policy.Call
		want []string
	}{
		{policy.Call{Tool: "file_write", Plugin: "files", User: "aki"},
			[]string{"allow drafts", "deny not ken", "ask default"}},
		{policy.Call{Tool: "file_read", Plugin: "files", User: "ken"}, []string{"deny not ken"}},
		{policy.Call{Tool: "grouped", Plugin: "x", User: "aki"}, []string{"deny not ken", "deny no first group"}},
		{policy.Call{Tool: "file_read", Plugin: "files", Frontend: "slack", Annotations: reads},
			[]string{"deny not ken", "deny only slack", "ask default"}},
	} {
		var got []string
		visible, asks := false, false
		for _, prospect := range p.Prospects(&test.call) {
			got = append(got, string(prospect.Action)+" "+prospect.Rule)
			visible, asks = visible || prospect.Action != policy.Deny, asks || prospect.Action == policy.Ask
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q", test.call, got)
		}
		if p.Visible(&test.call) != visible {
			t.Errorf("%+v: visible: %t", test.call, !visible)
		}
		if p.MayAsk(&test.call) != asks {
			t.Errorf("%+v: may ask: %t", test.call, !asks)
		}
	}
}

// TestCacheSeparatesGroups checks that the cached rules of one caller are not used for another, whatever the names of
// groups.
func TestCacheSeparatesGroups(t *testing.T) {
	t.Parallel()
	p := parse(t, "version: 1\nrules: [{name: a, action: deny, groups: [dev]}]")
	for _, test := range []struct {
		groups []string
		want   policy.Action
	}{{[]string{"dev ops"}, policy.Allow}, {[]string{"dev", "ops"}, policy.Deny},
		{[]string{"dev\" \"ops"}, policy.Allow}} {
		if d := p.Decide(&policy.Call{Tool: "x", Groups: test.groups, Annotations: reads}); d.Action != test.want {
			t.Errorf("%q: %s", test.groups, d.Action)
		}
	}
}

// TestPatterns checks that a pattern without a slash matches only names of tools.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern string
		want    bool
	}{{"file*", true}, {"files", false}, {"files*", false}, {"files/*", true}, {"*/file_read", true}, {"*", true},
		{"*read", true}, {"file_read/", false}} {
		p := parse(t, "version: 1\nrules: [{name: a, action: deny, tools: ['"+test.pattern+"']}]")
		if got := p.Decide(&policy.Call{Tool: "file_read", Plugin: "files", Annotations: reads}).
			Action == policy.Deny; got != test.want {
			t.Errorf("%s: %t", test.pattern, got)
		}
	}
}

// TestIndex checks that rules are found by every kind of name, in their order.
func TestIndex(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
groups: {dev: [aki]}
rules:
  - {name: tenant, action: deny, tenants: [acme], when: "arguments.n == 1"}
  - {name: token, action: deny, tokens: [ci], when: "arguments.n == 2"}
  - {name: group, action: deny, groups: [dev, ops], when: "arguments.n == 3"}
  - {name: user, action: deny, users: [aki], tools: [nothing, "file_*"], when: "arguments.n == 4"}
  - {name: plugin, action: deny, tools: ["files/*"], when: "arguments.n == 5"}
  - {name: exact, action: deny, tools: [file_read, other], when: "arguments.n == 6"}
  - {name: exact of a plugin, action: deny, tools: [files/file_read], when: "arguments.n == 7"}
  - {name: open, action: deny, tools: ["*_read"], when: "arguments.n == 8"}
  - {name: any, action: deny, when: "arguments.n == 9"}
  - {name: two ways, action: deny, tools: [file_read, "file_*", "*"], when: "arguments.n == 10"}
`)
	for i, want := range []string{"tenant", "token", "group", "user", "plugin", "exact", "exact of a plugin", "open",
		"any", "two ways", "default"} {
		c := policy.Call{
			Tool: "file_read", Plugin: "files", Tenant: "acme", Token: "ci", User: "aki", Annotations: reads,
			Arguments: fmt.Appendf(nil, `{"n":%d}`, i+1),
		}
		if d := p.Decide(&c); d.Rule != want {
			t.Errorf("%d: %s, want %s", i+1, d.Rule, want)
		}
		if d, _ := p.Explain(&c, "en"); d.Rule != want {
			t.Errorf("%d: explained as %s, want %s", i+1, d.Rule, want)
		}
		if n := len(p.Prospects(&c)); n != 11 {
			t.Errorf("%d prospects", n)
		}
	}
}

// TestLintInJapanese: no warning for a Japanese reader has an English sentence.
func TestLintInJapanese(t *testing.T) {
	t.Parallel()
	site := &policy.Site{Tools: []policy.ToolName{{Name: "read", Plugin: "files"}}, Frontends: []string{"slack"}, Tenants: []string{"acme"}}
	text := []byte(`version: 1
groups: {admins: [aki]}
rules:
  - {name: a, action: ask, tools: [reed], frontends: [slak], tenants: [other], groups: [admin], approvers: {users: [admins]}}
  - {name: b, action: deny, tools: ["nothing*"], reason: x}
  - {name: c, action: deny, tools: ["db/*"]}
  - {name: all, action: ask}
  - {name: never, action: allow, tools: [read]}
commands:
  - {name: d, action: deny, programs: ["*"]}
  - {name: e, action: deny, programs: [git]}
`)
	if _, err := policy.Parse(text); err != nil {
		t.Fatal(err)
	}
	err := policy.Lint(text, site)
	if err == nil {
		t.Fatal("nothing found")
	}
	for line := range strings.Lines(locale.In(err, "ja")) {
		t.Log(line)
		if !strings.Contains(line, "ありません") && !strings.Contains(line, "ください") && !strings.Contains(line, "ためです") {
			t.Errorf("in English: %s", line)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n < 8 {
		t.Errorf("%d warnings", n)
	}
}
