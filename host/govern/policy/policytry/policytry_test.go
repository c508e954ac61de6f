package policytry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/policy/policytry"
	"github.com/hako-run/hako/host/manifest"
)

// log is an audit log.
type log iter.Seq2[*audit.Entry, error]

func (l log) Read(context.Context, *audit.Query) iter.Seq2[*audit.Entry, error] {
	return iter.Seq2[*audit.Entry, error](l)
}

func logOf(entries ...*audit.Entry) log {
	return func(yield func(*audit.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte("version: 1\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const inForce = `
groups: {interns: [ken]}
employees: {aki@example.com: "103"}
rules:
  - {name: drafts, action: allow, tools: [file_write], when: arguments.path.startsWith("drafts/")}
  - {name: writing, action: ask, tools: [file_write]}
  - {name: logs, action: deny, tools: [read_log], groups: [interns]}
  - {name: many, action: deny, tools: [fetch], when: arguments.n > size(groups)}
`

// called is a record of a call that the policy in force decided.
func called(p *policy.Policy, tool string, action policy.Action, rule string, change ...func(*audit.Entry)) *audit.Entry {
	e := &audit.Entry{Seq: 7, Event: audit.Event{Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		Type: audit.TypeCall, Subject: audit.Subject{Frontend: "mcp-http", User: "ken"},
		Target:   audit.Target{Plugin: "files", Name: tool},
		Decision: &audit.Decision{Action: string(action), Rule: rule, Policy: p.ID()}, Arguments: json.RawMessage(`"hmac-sha256:00"`),
	}}
	for _, f := range change {
		f(e)
	}
	return e
}

var yes, no = true, false

// hints knows the tools whose names do not begin with "gone".
func hints(tool string) (a manifest.Annotations, ok bool) {
	a.DestructiveHint = &no
	if tool == "delete" {
		a.DestructiveHint = &yes
	}
	return a, !strings.HasPrefix(tool, "gone")
}

func TestRun(t *testing.T) {
	t.Parallel()
	now := parse(t, inForce)
	recorded := func(fields string) func(*audit.Entry) {
		return func(e *audit.Entry) { e.Arguments = json.RawMessage(fields) }
	}
	slack := func(e *audit.Entry) { e.Subject.Frontend, e.Subject.User = "slack", "U1" }
	for name, test := range map[string]struct {
		next  string
		entry *audit.Entry
		want  string
	}{
		"the same":        {inForce, called(now, "read_log", policy.Deny, "logs"), "same"},
		"denied":          {"default: deny", called(now, "other", policy.Allow, "default"), "deny by default"},
		"another rule":    {"rules: [{name: x, action: allow}]", called(now, "other", policy.Allow, "default"), "same, another rule"},
		"a group changes": {strings.Replace(inForce, "[ken]", "[]", 1), called(now, "read_log", policy.Deny, "logs"), "allow by default"},
		"a condition that was met": {inForce + "  - {name: z, action: deny, tools: [zzz]}",
			called(now, "file_write", policy.Allow, "drafts"), "same"},
		"a condition that was not met": {strings.Replace(inForce, "name: writing, action: ask", "name: writing, action: deny", 1),
			called(now, "file_write", policy.Ask, "writing"), "deny by writing"},
		"a condition on groups that stay": {inForce + "  - {name: z, action: deny, tools: [zzz]}",
			called(now, "fetch", policy.Allow, "default"), "same"},
		"a condition on groups that change": {strings.Replace(inForce, "[ken]", "[]", 1),
			called(now, "fetch", policy.Allow, "default"), policytry.Arguments},
		"a new condition": {strings.Replace(inForce, "drafts/", "tmp/", 1),
			called(now, "file_write", policy.Ask, "writing"), policytry.Arguments},
		"a new condition that a recorded argument decides": {strings.Replace(inForce, "drafts/", "tmp/", 1),
			called(now, "file_write", policy.Ask, "writing", recorded(`{"digest":"x","path":"tmp/a"}`)), "allow by drafts"},
		"a recorded argument is masked": {strings.Replace(inForce, "drafts/", "tmp/", 1),
			called(now, "file_write", policy.Ask, "writing", recorded(`{"digest":"x","path":"tmp/a"}`),
				func(e *audit.Entry) { e.Findings = []audit.Finding{{Place: "arguments"}} }), policytry.Arguments},
		"an argument that was not recorded": {`rules: [{name: a, action: deny, when: has(arguments.force)}]`,
			called(now, "other", policy.Allow, "default", recorded(`{"digest":"x","path":"tmp/a"}`)), policytry.Arguments},
		"whatever the arguments": {"rules: [{name: a, action: deny, when: arguments.x == 1}]\ndefault: deny",
			called(now, "other", policy.Allow, "default"), "deny by default"},
		"decided by another policy":             {inForce, called(parse(t, "rules: []"), "file_write", policy.Allow, "drafts"), policytry.Arguments},
		"a rule that this policy does not have": {inForce, called(now, "file_write", policy.Allow, "ghost"), policytry.Arguments},
		"a token": {"rules: [{name: ci, action: deny, tokens: [ci]}]", called(now, "other", policy.Allow, "default",
			func(e *audit.Entry) { e.Subject.Token = "ci" }), "deny by ci"},
		"scopes": {"rules: [{name: s, action: deny, missingScopes: [x, y]}]", called(now, "other", policy.Allow, "default",
			func(e *audit.Entry) { e.Subject.Scopes = []string{"x", "y"} }), "same"},
		"a tool's hints": {"rules: [{name: d, action: deny, when: destructive}]", called(now, "delete", policy.Allow, "default"), "deny by d"},
		"a tool that is gone": {"rules: [{name: d, action: deny, when: destructive}]", called(now, "gone", policy.Allow, "default"),
			policytry.Tool},
		"a tool that is gone, in a chat": {"rules: []", called(now, "gone", policy.Allow, "default", slack), policytry.Tool},
		"an employee": {inForce + `  - {name: own, action: deny, tools: [hours], when: '!has(caller.employee)'}`,
			called(now, "hours", policy.Allow, "default", slack), policytry.Employee},
		"an older record": {inForce, called(now, "other", policy.Allow, "default",
			func(e *audit.Entry) { e.Decision.Policy = "" }), policytry.Older},
		"a resource": {"rules: [{name: r, action: deny, tools: [files/resources/read], when: readOnly}]",
			called(now, "file:///x", policy.Allow, "default", func(e *audit.Entry) { e.Type = audit.TypeResource }), "deny by r"},
		"nothing decided": {"default: deny", called(now, "x", policy.Allow, "", func(e *audit.Entry) { e.Decision = nil }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := policytry.Run(t.Context(), logOf(test.entry), time.Time{}, parse(t, test.next), now, hints)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			switch {
			case r.Changed == 1:
				got = fmt.Sprintf("%s by %s", r.Changes[0].To.Action, r.Changes[0].To.Rule)
			case r.Undecidable == 1:
				for got = range r.Reasons {
				}
			case r.OtherRule == 1:
				got = "same, another rule"
			case r.Same == 1:
				got = "same"
			}
			if got != test.want || r.Safe() != (r.Changed+r.Undecidable == 0) {
				t.Errorf("%q, want %q: %+v", got, test.want, r)
			}
		})
	}
}

// TestManyRecords: a large log takes bounded memory, and the counts add up.
func TestManyRecords(t *testing.T) {
	t.Parallel()
	now := parse(t, inForce)
	const n = 100_000
	read := 0
	many := log(func(yield func(*audit.Entry, error) bool) {
		for i := range n + n/10 {
			read++
			e := called(now, fmt.Sprintf("tool%d", i%50), policy.Allow, "default")
			e.Subject.User = fmt.Sprintf("user%d", i)
			if !yield(e, nil) {
				return
			}
		}
	})
	r, err := policytry.Run(t.Context(), many, time.Time{}, parse(t, "default: deny"), now, hints)
	if err != nil {
		t.Fatal(err)
	}
	listed := r.Omitted
	for _, c := range r.Changes {
		listed += c.Calls
	}
	if r.Calls > n || read > n+1 || !r.Cut || r.Until.IsZero() || len(r.Changes) > 100 || listed != r.Changed ||
		r.Same+r.Changed+r.Undecidable != r.Calls {
		t.Errorf("%d read, %d calls, %d changed, %d listed in %d lines, cut %t", read, r.Calls, r.Changed, listed,
			len(r.Changes), r.Cut)
	}
}

// TestHostilePatterns: patterns and conditions that backtrack elsewhere do not here.
func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	stars := strings.Repeat("a*", 1000)
	next := parse(t, `rules:
  - {name: stars, action: deny, tools: ["*`+stars+`b"]}
  - {name: regexp, action: deny, when: 'tool.matches("^(a+)+b$")'}
  - {name: costly, action: ask, when: '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))'}
`)
	now := parse(t, inForce)
	entry := called(now, strings.Repeat("a", 4000), policy.Allow, "default")
	r, err := policytry.Run(t.Context(), logOf(entry, entry, entry), time.Time{}, next, now, hints)
	// A condition that costs too much fails closed.
	if err != nil || r.Changed != 3 || r.Changes[0].To.Rule != "costly" || r.Changes[0].Calls != 3 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	now := parse(t, inForce)
	broken := errors.New("line 3 is no record")
	for name, test := range map[string]struct {
		log  log
		want error
	}{
		"the log is broken": {func(yield func(*audit.Entry, error) bool) { yield(nil, broken) }, broken},
		"canceled": {func(yield func(*audit.Entry, error) bool) {
			for yield(called(now, "x", policy.Allow, "default"), nil) {
			}
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			if errors.Is(test.want, context.Canceled) {
				cancel()
			}
			defer cancel()
			if _, err := policytry.Run(ctx, test.log, time.Time{}, now, now, hints); !errors.Is(err, test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
