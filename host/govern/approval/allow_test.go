package approval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
)

// TestAllowRules: each rule allows the call of the question, and no call outside its scope.
func TestAllowRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments, user string
		scopes          string
	}{
		"plain":             {`{"n":1,"f":1.5,"on":true,"none":null,"list":[1,{"a":"b"}]}`, "aki", "arguments caller tool"},
		"texts that quote":  {`{"a":"x\" || true || \"","b":"\u003c\ud83d\ude00\\\n\u202e"}`, "aki\"\n  - name: x", "arguments caller tool"},
		"hidden characters": {`{}`, "aki\u202e", "arguments caller tool"},
		"nobody's name":     {`{"a":"b"}`, "", "arguments caller tool"},
		"a large number":    {`{"n":123456789012345678901234567890}`, "aki", "caller tool"},
		"long arguments":    {`{"a":"` + strings.Repeat("x", 3000) + `"}`, "aki", "caller tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tenant := range []string{"acme", ""} {
				q := question(test.arguments)
				q.Caller.User, q.Caller.Tenant = test.user, tenant
				if got := allowedScopes(t, q); got != test.scopes {
					t.Errorf("tenant %q: got %s", tenant, got)
				}
			}
		})
	}
	q := question(`{"a":"secret"}`)
	q.Hide(json.RawMessage(`{"a":"[masked]"}`), "")
	if list := q.AllowRules(); len(list) != 2 {
		t.Errorf("with a masked secret: %v", list)
	}
	q.Detail = "rm x"
	if list := q.AllowRules(); list != nil {
		t.Errorf("for an operation: %v", list)
	}
}

// allowedScopes returns the scopes of the rules for a question. It fails if a rule does not allow the call, or allows one
// outside its scope.
func allowedScopes(t *testing.T, q *approval.Question) string {
	t.Helper()
	call := policy.Call{Tool: q.Tool, Plugin: q.Plugin, Frontend: q.Caller.Frontend, Tenant: q.Caller.Tenant,
		User: q.Caller.User, Arguments: q.Arguments}
	elsewhere, abroad, stranger, other := call, call, call, call
	elsewhere.Frontend, abroad.Tenant, stranger.User = "elsewhere", "another", "bo"
	other.Arguments = json.RawMessage(`{"other":1}`)
	var scopes []string
	for _, rule := range q.AllowRules() {
		scopes = append(scopes, string(rule.Scope))
		p, err := policy.Parse([]byte("version: 1\ndefault: ask\nrules:\n" + rule.YAML))
		if err != nil {
			t.Fatal(err)
		}
		allows := func(c policy.Call) bool { return p.Decide(&c).Action == policy.Allow }
		everybody := rule.Scope == approval.ScopeTool
		if !allows(call) || allows(elsewhere) != everybody || allows(abroad) != everybody || allows(stranger) != everybody ||
			allows(other) != (rule.Scope != approval.ScopeArguments) || strings.ContainsRune(rule.YAML, 0x202e) ||
			strings.Contains(rule.YAML, `\u0026`) {
			t.Errorf("%s", rule.YAML)
		}
	}
	return strings.Join(scopes, " ")
}

// TestAllowRuleNames: rules for callers of different tenants have different names, so that one file can hold both.
func TestAllowRuleNames(t *testing.T) {
	t.Parallel()
	rules := ""
	for _, tenant := range []string{"", "acme", "umbrella"} {
		q := question(`{}`)
		q.Caller.Tenant = tenant
		rules += q.AllowRules()[1].YAML
	}
	if _, err := policy.Parse([]byte("version: 1\nrules:\n" + rules)); err != nil {
		t.Error(err)
	}
}
