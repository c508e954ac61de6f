package approval

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/internal/visible"
)

// Scope is the set of calls for which a rule holds.
type Scope string

// Scopes.
const (
	ScopeArguments Scope = "arguments" // this tool with these arguments, by this caller
	ScopeCaller    Scope = "caller"    // this tool, by this caller
	ScopeTool      Scope = "tool"      // this tool, by everybody
)

// AllowRule is a policy rule that would have allowed a call without a question.
type AllowRule struct {
	Scope Scope `json:"scope"`
	// YAML is the rule as an item of the list "rules" of a policy.
	YAML string `json:"yaml"`
}

// maxRuleArguments bounds the arguments within a rule, in bytes.
const maxRuleArguments = 2000

// AllowRules returns the rules that would have allowed the call, the narrowest first. Nobody has put them in force.
// There are none for an operation within a call, whose rules have another form, and none about arguments with masked
// secrets.
func (q *Question) AllowRules() []AllowRule {
	if q.Detail != "" {
		return nil
	}
	name := "always allow " + q.Tool
	caller := fields{{"frontends", q.Caller.Frontend}, {"tenants", q.Caller.Tenant}, {"users", q.Caller.User}}
	who := name + " for " + cmp.Or(q.Caller.User, "callers without a name")
	if q.Caller.Tenant != "" {
		who += " of " + q.Caller.Tenant
	}
	who += " at " + q.Caller.Frontend
	var without []string // lists of names have no entry for callers without a tenant or a name
	if q.Caller.Tenant == "" {
		without = append(without, `tenant == ""`)
	}
	if q.Caller.User == "" {
		without = append(without, `user == ""`)
	}
	var list []AllowRule
	add := func(scope Scope, name string, match fields, conditions ...string) {
		rule := AllowRule{scope, match.rule(name, q.Tool, strings.Join(conditions, " && "))}
		if _, err := policy.Parse([]byte("version: 1\nrules:\n" + rule.YAML)); err == nil {
			list = append(list, rule)
		}
	}
	if arguments := canonical(q.Arguments); q.Hidden == "" && len(arguments) <= maxRuleArguments {
		// JSON is an expression of CEL but for numbers beyond 64 bits, with which the rule is left out.
		add(ScopeArguments, who+" with these arguments ("+q.Binding()[:8]+")", caller,
			append(without, "arguments == "+string(arguments))...)
	}
	add(ScopeCaller, who, caller, without...)
	add(ScopeTool, name, nil)
	return list
}

// fields are members of a rule with one name each.
type fields []struct{ name, value string }

// rule writes a rule. Texts are quoted, so none of them can add a key.
func (f fields) rule(name, tool, when string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s\n    action: allow\n    tools: [%s]\n", quoted(name), quoted(tool))
	for _, field := range f {
		if field.value != "" {
			fmt.Fprintf(&b, "    %s: [%s]\n", field.name, quoted(field.value))
		}
	}
	if when != "" {
		fmt.Fprintf(&b, "    when: %s\n", quoted(when))
	}
	return b.String()
}

// quoted quotes a text for YAML. Hidden characters are escaped, which YAML reads in the same way.
func quoted(text string) string {
	return visible.Line(string(jsonstring.AppendQuote(nil, text)))
}
