package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

const scoped = `
version: 1
groups: {admins: [aki]}
rules:
  - {name: writing, action: deny, tools: [file_write], frontends: [mcp-http], missingScopes: [files:write, files:read]}
  - {name: engineers, action: allow, tools: [deploy], when: '"engineers" in caller.groups && "admins" in caller.groups'}
  - {name: others, action: deny, tools: [deploy]}
  - {name: deleting, action: deny, tools: [file_delete], when: '!("files:delete" in caller.scopes)'}
`

// TestScopes: a rule requires all of its scopes, and conditions know scopes and groups of the caller.
func TestScopes(t *testing.T) {
	t.Parallel()
	p := parse(t, scoped)
	for _, test := range []struct {
		tool, user, frontend string
		groups, scopes       []string
		rule, missing        string
	}{
		{"file_write", "", "mcp-http", nil, nil, "writing", "files:write files:read"},
		{"file_write", "", "mcp-http", nil, []string{"files:read", "other"}, "writing", "files:write"},
		{"file_write", "", "mcp-http", nil, []string{"files:read", "files:write"}, policy.RuleDefault, ""},
		{"file_write", "", "mcp-http", nil, []string{"files:read files:write"}, "writing", "files:write files:read"},
		{"file_write", "", "terminal", nil, nil, policy.RuleDefault, ""},
		{"deploy", "aki", "mcp-http", []string{"engineers"}, nil, "engineers", ""},
		{"deploy", "ken", "mcp-http", []string{"engineers"}, nil, "others", ""},
		{"deploy", "aki", "mcp-http", nil, []string{"engineers"}, "others", ""},
		{"file_delete", "", "mcp-http", nil, []string{"files:delete"}, policy.RuleDefault, ""},
		{"file_delete", "", "mcp-http", []string{"files:delete"}, nil, "deleting", ""},
	} {
		caller := policy.Caller{User: test.user, Frontend: test.frontend, Groups: test.groups, Scopes: test.scopes}
		c := caller.Call(test.tool, "files", manifest.Annotations{})
		c.Arguments = json.RawMessage("{}")
		d := p.Decide(c)
		if d.Rule != test.rule || strings.Join(d.MissingScopes, " ") != test.missing {
			t.Errorf("%+v: %+v", test, d)
		}
		explained, steps := p.Explain(c, "en")
		if explained.Rule != d.Rule || !slices.Equal(explained.MissingScopes, d.MissingScopes) {
			t.Errorf("%+v: explained as %+v, %+v", test, explained, steps)
		}
	}
}

// TestScopesDoNotHide: a client can only request a scope for a tool that it knows.
func TestScopesDoNotHide(t *testing.T) {
	t.Parallel()
	p := parse(t, scoped+"  - {name: never, action: deny, users: [ken]}\n")
	caller := policy.Caller{Frontend: "mcp-http"}
	if !p.Visible(caller.Call("file_write", "files", manifest.Annotations{})) {
		t.Error("a tool that wants scopes is not listed")
	}
	caller.User = "ken"
	if p.Visible(caller.Call("file_write", "files", manifest.Annotations{})) {
		t.Error("a tool that is denied also with the scopes is listed")
	}
}

func TestUnknownFieldOfCaller(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse([]byte("version: 1\nrules: [{name: a, action: deny, when: '\"x\" in caller.scope'}]"))
	if err == nil || !strings.Contains(err.Error(), `unknown field of caller "scope": did you mean "scopes"?`) {
		t.Error(err)
	}
}
