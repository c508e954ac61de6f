package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
)

const example = `
version: 1
default: allow
groups:
  hr-admins: [U012ABCDEF, aki@example.com]
  interns: [ken]
rules:
  - name: no deletes from chat
    action: deny
    tools: ["delete_*", "shell/*"]
    frontends: [slack]
    reason: {en: not from chat, ja: チャットからは不可}
  - name: small sheets
    action: allow
    tools: [write_rows_to_google_sheet]
    when: 'size(arguments.rows) <= 2'
  - name: ask before writing
    action: ask
    when: '!readOnly && openWorld'
    approvers: {groups: [hr-admins], users: [yuki]}
    remember: 10m
  - name: interns read
    action: deny
    groups: [interns]
    when: '!readOnly'
  - name: weather for tenants
    action: deny
    tools: [get_weather]
    when: 'tenant == "" || tenant.startsWith("trial-")'
  - name: no secrets in paths
    action: deny
    tools: ["files/*"]
    when: 'arguments.path.contains("secret")'
tool_permissions:
  list_employees: requires_confirmation
  old_tool: deny
commands:
  - {name: no pushes, action: deny, programs: [git], args: [push], reason: releases go through CI}
`

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var yes, no = true, false

var (
	reads    = manifest.Annotations{ReadOnlyHint: &yes, OpenWorldHint: &no}
	writes   = manifest.Annotations{DestructiveHint: &no, OpenWorldHint: &yes}
	destroys = manifest.Annotations{OpenWorldHint: &no}
)

func TestDecide(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	tests := []struct {
		name string
		call policy.Call
		want string
	}{
		{"nothing matches", policy.Call{Tool: "calculate_sum", Plugin: "sum", Annotations: reads}, "allow default"},
		{"a pattern of tools at a frontend", policy.Call{Tool: "delete_file", Plugin: "files", Frontend: "slack",
			Annotations: destroys}, "deny no deletes from chat"},
		{"a pattern of plugins", policy.Call{Tool: "shell_exec", Plugin: "shell", Frontend: "slack"},
			"deny no deletes from chat"},
		{"the same tool at another frontend", policy.Call{Tool: "shell_exec", Plugin: "shell", Frontend: "terminal"},
			"ask ask before writing"},
		{"arguments that fit", call("write_rows_to_google_sheet", "sheets", `{"rows":[[1],[2]]}`, writes),
			"allow small sheets"},
		{"arguments that do not", call("write_rows_to_google_sheet", "sheets", `{"rows":[[1],[2],[3]]}`, writes),
			"ask ask before writing"},
		{"arguments without the field: a rule that allows does not match",
			call("write_rows_to_google_sheet", "sheets", `{}`, writes), "ask ask before writing"},
		{"arguments without the field: a rule that denies matches", call("file_list", "files", `{}`, reads),
			"deny no secrets in paths"},
		{"arguments of another type", call("file_read", "files", `{"path":7}`, reads), "deny no secrets in paths"},
		{"arguments that are harmless", call("file_read", "files", `{"path":"a"}`, reads), "allow default"},
		{"a group", policy.Call{Tool: "file_move", Plugin: "notes", User: "ken", Annotations: destroys},
			"deny interns read"},
		{"a group of the frontend's", policy.Call{Tool: "file_move", Plugin: "notes", User: "x",
			Groups: []string{"interns"}, Annotations: destroys}, "deny interns read"},
		{"nobody is in no group", policy.Call{Tool: "file_move", Plugin: "notes", Annotations: destroys},
			"allow default"},
		{"a tenant", policy.Call{Tool: "get_weather", Plugin: "weather", Tenant: "trial-7", Annotations: reads},
			"deny weather for tenants"},
		{"another tenant", policy.Call{Tool: "get_weather", Plugin: "weather", Tenant: "acme", Annotations: reads},
			"allow default"},
		{"the table of tools", policy.Call{Tool: "list_employees", Plugin: "hr", Annotations: reads},
			"ask tool_permissions: list_employees"},
		{"what destroys, in a chat", policy.Call{Tool: "drop", Plugin: "db", Frontend: "slack", Annotations: destroys},
			"deny " + policy.RuleChat},
		{"what says nothing of itself, in a chat",
			policy.Call{Tool: "x", Plugin: "y", Frontend: "slack",
				Annotations: manifest.Annotations{OpenWorldHint: &no}},
			"deny " + policy.RuleChat},
		{"what only reads, in a chat", policy.Call{Tool: "x", Plugin: "y", Frontend: "slack", Annotations: reads},
			"allow default"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the second time from the cache
				d := p.Decide(&test.call)
				if got := fmt.Sprintf("%s %s", d.Action, d.Rule); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
			}
			explained, steps := p.Explain(&test.call, "en")
			if got := fmt.Sprintf("%s %s", explained.Action, explained.Rule); got != test.want ||
				!steps[len(steps)-1].Decided {
				t.Errorf("explained as %s by %+v", got, steps)
			}
		})
	}
}

func call(tool, plugin, arguments string, a manifest.Annotations) policy.Call {
	return policy.Call{Tool: tool, Plugin: plugin, Arguments: json.RawMessage(arguments), Annotations: a}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	for _, test := range []struct {
		name string
		call policy.Call
		want bool
	}{
		{"allowed", policy.Call{Tool: "calculate_sum", Plugin: "sum", Annotations: reads}, true},
		{"asked", policy.Call{Tool: "list_employees", Plugin: "hr", Annotations: reads}, true},
		{"denied", policy.Call{Tool: "old_tool", Plugin: "x", Annotations: reads}, false},
		{"denied in a chat", policy.Call{Tool: "drop", Plugin: "db", Frontend: "slack", Annotations: destroys}, false},
		{"denied for some arguments", policy.Call{Tool: "file_read", Plugin: "files", Annotations: reads}, true},
		{"allowed for some arguments, before it is denied",
			policy.Call{Tool: "write_rows_to_google_sheet", Plugin: "sheets", User: "ken", Annotations: destroys},
			true},
	} {
		if got := p.Visible(&test.call); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	c := call("write_rows_to_google_sheet", "sheets", `{"rows":[[1],[2],[3]]}`, writes)
	_, steps := p.Explain(&c, "en")
	want := []policy.Step{
		{Rule: "small sheets", Line: 13,
			Mismatch: &policy.Mismatch{Field: "when", Want: []string{"size(arguments.rows) <= 2"}}},
		{Rule: "ask before writing", Line: 17, Decided: true, When: "!readOnly && openWorld"},
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("%+v", steps)
	}
}

func TestApprovers(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	c := call("shell_exec", "shell", `{}`, writes)
	d := p.Decide(&c)
	for user, want := range map[string]bool{"aki@example.com": true, "U012ABCDEF": true, "yuki": true, "ken": false,
		"": false, "hr-admins": false} {
		if got := p.MayApprove(d, "ken", user, nil); got != want {
			t.Errorf("%q: %t", user, got)
		}
	}
	if !p.MayApprove(d, "ken", "someone", []string{"hr-admins"}) {
		t.Error("a member by the frontend's groups may not")
	}
	own := policy.Decision{Action: policy.Ask}
	if !p.MayApprove(own, "ken", "ken", nil) || p.MayApprove(own, "ken", "aki@example.com", nil) {
		t.Error("without approvers the caller alone may")
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	p := parse(t, "version: 1\nquotas: [{name: few, per: tenant, plugins: [hr], rate: 60, burst: 5, concurrent: 2, "+
		"cpu: 10m}]")
	want := quota.Rule{Name: "few", Per: quota.Tenant, Plugins: []string{"hr"}, Rate: 60, Burst: 5, Concurrent: 2,
		CPU: 10 * time.Minute}
	if len(p.Quotas) != 1 || !reflect.DeepEqual(p.Quotas[0], want) {
		t.Errorf("%+v", p.Quotas)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	j, err := judge.New(parse(t, example).Commands, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := j.Line("git push"); err != nil || v.Action != judge.Deny || v.Rule != "no pushes" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"no version", "rules: []", "version"},
		{"an unknown key", "version: 1\nruls: []", `did you mean "rules"`},
		{"an unknown action", "version: 1\nrules: [{name: a, action: forbid}]", "must be allow, ask or deny"},
		{"no name", "version: 1\nrules: [{action: deny}]", "needs a name"},
		{"no action", "version: 1\nrules: [{name: a}]", "needs an action"},
		{"two of one name", "version: 1\nrules: [{name: a, action: deny}, {name: a, action: deny}]",
			"another rule called"},
		{"approvers of a denial", "version: 1\nrules: [{name: a, action: deny, approvers: {users: [x]}}]",
			"for the action ask"},
		{"no expression", "version: 1\nrules: [{name: a, action: deny, when: 'user =='}]", "when:"},
		{"an unknown variable", "version: 1\nrules: [{name: a, action: deny, when: 'role == 1'}]",
			`at character 1: unknown variable "role": known are arguments`},
		{"no condition", "version: 1\nrules: [{name: a, action: deny, when: 'size(user)'}]", "true or false, not int"},
		{"a word that the table does not know", "version: 1\ntool_permissions: {x: ask}", "requires_confirmation"},
		{"a command rule without conditions", "version: 1\ncommands: [{name: x, action: deny}]",
			"would match everything"},
		{"two quotas of one name", "version: 1\nquotas: [{name: x, rate: 1}, {name: x, rate: 2}]",
			"another quota called"},
		{"a quota that limits nothing", "version: 1\nquotas: [{name: x}]", "limits nothing"},
		{"an anchor", "version: 1\nrules: [&a {name: a, action: deny}, *a]", "anchors and aliases"},
	} {
		if _, err := policy.Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestCost checks that a condition with too high a cost counts as one that cannot be evaluated.
func TestCost(t *testing.T) {
	t.Parallel()
	p := parse(t, `
version: 1
rules:
  - {name: slow, action: deny, when: 'arguments.l.all(a, arguments.l.all(b, arguments.l.all(c, a + b + c > 0)))'}
`)
	c := call("x", "y", `{"l":[`+strings.Repeat("1,", 999)+`1]}`, reads)
	if d := p.Decide(&c); d.Action != policy.Deny || d.Rule != "slow" {
		t.Errorf("%+v", d)
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hako.policy.yaml")
	l, err := policy.OpenLive(path)
	if err != nil {
		t.Fatal(err)
	}
	told, toldAll := 0, 0
	stop := l.Watch(func() { told++ })
	l.Watch(func() { toldAll++ })
	c := &policy.Call{Tool: "x", Annotations: reads}
	expect := func(what string, action policy.Action, changed bool, failure string) {
		t.Helper()
		got, err := l.Reload()
		if got != changed || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) ||
			(l.Err() == nil) != (failure == "") {
			t.Errorf("%s: changed %t, %v", what, got, err)
		}
		if d := l.Policy().Decide(c); d.Action != action {
			t.Errorf("%s: %+v", what, d)
		}
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect("no file", policy.Allow, false, "")
	write("version: 1\ndefault: deny\n")
	expect("a new file", policy.Deny, true, "")
	expect("the same file", policy.Deny, false, "")
	write("version: 1\ndefault: perhaps\n")
	expect("a broken file", policy.Deny, false, "must be allow")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("the file is gone", policy.Deny, false, "no such file")
	write("version: 1\ndefault: deny\n")
	stop()
	expect("the old file again", policy.Deny, true, "")
	if told != 1 || toldAll != 2 {
		t.Errorf("told of %d and %d changes, want 1 and 2", told, toldAll)
	}
	write("broken: [")
	if _, err := policy.OpenLive(path); err == nil {
		t.Error("starts with a broken file")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse(data)
		if err != nil {
			return
		}
		c := call("delete_file", "files", `{"path":"x"}`, destroys)
		d := p.Decide(&c)
		if explained, _ := p.Explain(&c, "en"); explained.Action != d.Action || explained.Rule != d.Rule {
			t.Errorf("decided %+v, explained %+v", d, explained)
		}
		if d.Action != policy.Deny && !p.Visible(&c) {
			t.Errorf("%+v, but the tool is hidden", d)
		}
		if d.Action == policy.Ask && !p.MayAsk(&c) {
			t.Errorf("%+v, but calls cannot be asked about", d)
		}
		if !slices.ContainsFunc(p.Prospects(&c),
			func(prospect policy.Prospect) bool { return prospect.Rule == d.Rule }) {
			t.Errorf("%+v is no prospect", d)
		}
		_ = policy.Lint(data, site) // must not panic
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, rules := range []int{10, 10_000} {
		b.Run(fmt.Sprint(rules), func(b *testing.B) {
			text := "version: 1\nrules:\n"
			for i := range rules {
				text += fmt.Sprintf("  - {name: r%d, action: deny, tools: [\"tool_%d\", \"x%d_*\"], users: [u%d], "+
					"when: 'arguments.n > %d'}\n", i, i%100, i, i%1000, i)
			}
			p := parse(b, text)
			c := call("tool_7", "p", `{"n":0,"text":"hello"}`, reads)
			c.User = "u7"
			for b.Loop() {
				if d := p.Decide(&c); d.Action != policy.Allow {
					b.Fatal(d)
				}
			}
		})
	}
}

// TestEveryField gives a rule one field after the other: Decide, Explain and Lint must compare all of them.
func TestEveryField(t *testing.T) {
	t.Parallel()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[policy.Rule]()) {
		if field.Type != reflect.TypeFor[[]string]() || !field.IsExported() {
			continue
		}
		key := strings.ToLower(field.Name[:1]) + field.Name[1:]
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			text := "version: 1\nrules:\n  - {name: a, action: deny, " + key + ": [other]}\n  - {name: b, action: ask}\n"
			p := parse(t, text)
			call := &policy.Call{Tool: "tool", Plugin: "plugin", Scopes: []string{"other"}}
			if d := p.Decide(call); d.Rule != "b" {
				t.Errorf("Decide: the rule %q decides", d.Rule)
			}
			d, steps := p.Explain(call, "en")
			if d.Rule != "b" {
				t.Errorf("Explain: the rule %q decides", d.Rule)
			}
			if m := steps[0].Mismatch; key != "tools" && (m == nil || m.Field != key || len(m.Want) != 1) {
				t.Errorf("Explain: the mismatch is %+v", m)
			}
			if err := policy.Lint([]byte(text), site); err != nil && strings.Contains(err.Error(), "can never decide") {
				t.Errorf("Lint: %v", err)
			}
		})
	}
}
