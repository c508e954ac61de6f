package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

// policyFile is the policy of a world.
type policyFile struct{ *policy.Live }

func (p policyFile) Current() *policy.Policy { return p.Policy() }

func (p policyFile) File() string { return p.Path() }

func (p policyFile) Text() (string, error) {
	data, err := os.ReadFile(p.Path())
	return string(data), err
}

func (policyFile) Site() *policy.Site {
	return &policy.Site{Tools: []policy.ToolName{{Name: "danger", Plugin: "files"}}, Frontends: []string{"mcp-http"},
		Tokens: []string{"ci"}}
}

func (policyFile) Resolve(caller *policy.Caller) error {
	if caller.Frontend == "nowhere" {
		return errors.New("unknown frontend")
	}
	return nil
}

const shownPolicy = testPolicy + `  - {name: writing, action: deny, tools: [file_write], groups: [interns], missingScopes: [files:write]}
`

// policed is a world whose console shows a policy, with some tools.
func policed(t *testing.T, text string, change func(*console.Options)) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hako.policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := policy.OpenLive(file)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *world, o *console.Options) {
		o.Policy = policyFile{live}
		if change != nil {
			change(o)
		}
	})
	w.offer("files", echo, manifest.Tool{Name: "danger"}, manifest.Tool{Name: "file_write"}, manifest.Tool{Name: "forbidden"})
	return w
}

func TestPolicyIsShown(t *testing.T) {
	t.Parallel()
	b := policed(t, shownPolicy, nil).as(console.Viewer)
	var shown struct {
		File, Default string
		Rules         []struct {
			Name    string
			Line    int
			Matches []struct {
				Field  string
				Values []string
			}
		}
	}
	b.get("policy").into(t, &shown)
	if last := shown.Rules[len(shown.Rules)-1]; len(shown.Rules) != 4 || shown.Default != "allow" || last.Line != 8 ||
		fmt.Sprint(last.Matches) != "[{tools [file_write]} {groups [interns]} {missingScopes [files:write]}]" {
		t.Errorf("%+v", shown)
	}
	var table struct {
		Columns []struct{ Kind, Name string }
		Items   []struct {
			Tool  string
			Cells []struct{ Permission string }
		}
	}
	b.get("policy/table?tool=file_w").into(t, &table)
	if fmt.Sprint(table) != "{[{anyone } {group interns} {token ci}] [{file_write [{allow} {deny} {allow}]}]}" {
		t.Errorf("%+v", table)
	}
	b.get("policy/table?caller=intern&tool=danger").into(t, &table)
	if fmt.Sprint(table) != "{[{group interns}] [{danger [{requires_confirmation}]}]}" {
		t.Errorf("%+v", table)
	}
	if a := b.get("policy/table?frontend=nowhere"); a.code() != "invalid" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestPolicyIsExplained: the console says the same as hako policy explain.
func TestPolicyIsExplained(t *testing.T) {
	t.Parallel()
	b := policed(t, shownPolicy, nil).as(console.Viewer)
	var e policy.Explanation
	caller := map[string]any{"frontend": "mcp-http", "groups": []string{"interns"}}
	body := map[string]any{"tool": "file_write", "caller": caller, "arguments": map[string]any{}}
	b.post("policy/explain", body).into(t, &e)
	if e.Decision.Rule != "writing" || e.Decision.Line != 8 || e.Decision.MissingScopes[0] != "files:write" {
		t.Errorf("%+v", e.Decision)
	}
	caller["scopes"] = []string{"files:write"}
	b.post("policy/explain", body).into(t, &e)
	if e.Decision.Rule != policy.RuleDefault || e.Passed[0].Field != "missingScopes" {
		t.Errorf("%+v", e)
	}
	for code, body := range map[string]any{
		"not_found": map[string]any{"tool": "nothing", "caller": caller},
		"invalid":   map[string]any{"tool": "file_write", "caller": caller, "arguments": []int{1}},
	} {
		if a := b.post("policy/explain", body); a.code() != code {
			t.Errorf("%d %s, want %s", a.status, a.body, code)
		}
	}
}

// trial is the result of POST policy/try.
type trial struct {
	Problems, Warnings []struct {
		Line, Column int
		Text         string
	}
	NoLog  bool
	Result *struct {
		Calls, Same, Changed int
		Changes              []struct {
			Tool     string
			From, To struct{ Action, Rule string }
		}
	}
}

func TestPolicyIsTried(t *testing.T) {
	t.Parallel()
	w := policed(t, shownPolicy, nil)
	p, err := policy.Parse([]byte(shownPolicy))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := w.log.Append(t.Context(), &audit.Event{Time: w.clock.Now().Add(-time.Duration(i) * 20 * time.Hour),
			Type: audit.TypeCall, Outcome: "ok", Subject: audit.Subject{Frontend: "mcp-http", User: "ken"},
			Target:   audit.Target{Plugin: "files", Name: "danger"},
			Decision: &audit.Decision{Action: "ask", Rule: "ask about danger", Policy: p.ID()}}); err != nil {
			t.Fatal(err)
		}
	}
	b := w.as(console.Admin)
	var got trial
	b.post("policy/try", map[string]any{"text": "version: 1\nrules: [{name: x, action: deny, tools: [dangre]}]", "hours": 24}).into(t, &got)
	if r := got.Result; r == nil || r.Calls != 2 || r.Changed != 2 || r.Changes[0].From.Rule != "ask about danger" ||
		r.Changes[0].To.Action != "allow" || len(got.Warnings) != 1 || got.Warnings[0].Line != 2 {
		t.Errorf("%+v %+v", got, got.Result)
	}
	got = trial{}
	b.post("policy/try?lang=ja", map[string]any{"hours": 24,
		"text": "version: 1\nrules:\n  - {name: x, action: deny, when: tool + 1 == 2}"}).into(t, &got)
	if p := got.Problems; len(p) != 1 || p[0].Line != 3 || p[0].Column != 35 ||
		!strings.HasPrefix(p[0].Text, "rules[0].when: 6 文字目: _+_ は (string, int) には使えません") {
		t.Errorf("in Japanese: %+v", got.Problems)
	}
	if text := b.get("policy/text"); !strings.Contains(text.body, "ask about danger") {
		t.Errorf("%s", text.body)
	}
	if w.Console == nil || w.policy.Decide(&policy.Call{Tool: "danger"}).Action != policy.Ask {
		t.Error("the policy in force has changed")
	}
}

// TestHostilePolicies: a text that somebody tries costs little and says what is wrong with it.
func TestHostilePolicies(t *testing.T) {
	t.Parallel()
	b := policed(t, shownPolicy, func(o *console.Options) { o.Journal = nil }).as(console.Admin)
	bomb := "version: 1\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'j'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	large := "version: 1\nrules:\n"
	for i := 0; len(large) < 1<<20; i++ {
		large += strings.Repeat(fmt.Sprintf("  - {name: r%d, action: deny, tools: [\"a*b*%d\"]}\n", i, i), 1) +
			strings.Repeat("#", 2000) + "\n"
	}
	for name, test := range map[string]struct{ text, want string }{
		"aliases":   {bomb, "anchor"},
		"a problem": {"version: 1\nrules: [{name: a, action: forbid}]", "must be allow, ask or deny"},
		"deep":      {"version: 1\nrules: " + strings.Repeat("[", 20_000), ""},
		"a pattern": {"version: 1\nrules: [{name: a, action: deny, when: 'tool.matches(\"(a\")'}]", ""},
		"nothing":   {"", "empty"},
		"large":     {large, ""},
	} {
		var got trial
		b.post("policy/try", map[string]any{"text": test.text, "hours": 1}).into(t, &got)
		if text := fmt.Sprint(got.Problems); test.want != "" && !strings.Contains(text, test.want) || got.Result != nil {
			t.Errorf("%s: %.300s", name, text)
		}
		if name == "large" && (!got.NoLog || len(got.Problems) > 0) {
			t.Errorf("large: %+v", got.Problems)
		}
	}
	for name, body := range map[string]any{
		"too large": map[string]any{"text": strings.Repeat("#", 3<<20), "hours": 1},
		"too long":  map[string]any{"text": "version: 1", "hours": 1000},
		"no time":   map[string]any{"text": "version: 1"},
	} {
		if a := b.post("policy/try", body); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestNobodyElseTriesPolicies: neither the text nor a trial is for viewers and approvers.
func TestNobodyElseTriesPolicies(t *testing.T) {
	t.Parallel()
	w := policed(t, shownPolicy, nil)
	for _, role := range []console.Role{console.Viewer, console.Approver} {
		b := w.as(role)
		for name, a := range map[string]*answer{
			"text": b.get("policy/text"), "try": b.post("policy/try", map[string]any{"text": "version: 1", "hours": 1}),
		} {
			if a.status != http.StatusForbidden {
				t.Errorf("%s as %s: %d %s", name, role, a.status, a.body)
			}
		}
	}
}

// TestTrialEndsWithItsRequest: nobody waits for a trial whose page was left.
func TestTrialEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	b := policed(t, shownPolicy, nil).as(console.Admin)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := b.do("POST", "policy/try", map[string]any{"text": "version: 1", "hours": 1}, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if a.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", a.status, a.body)
	}
}
