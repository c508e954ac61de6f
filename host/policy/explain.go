package policy

import (
	"fmt"
	"strings"
)

// Step is one rule that was looked at on the way to a decision.
type Step struct {
	Rule   string
	Action Action
	// Line is where the rule is in its file, counted from 1. Zero for one that is not there.
	Line int
	// Decided says that this rule decided. Otherwise Why says why it did not. A rule that decided because its condition could not be worked
	// out has a Why too.
	Decided bool
	Why     string
}

// Explain decides about a call as Decide does, and says which rules were looked at. Rules whose names do not match are among the steps if
// they are about the tool.
func (p *Policy) Explain(c *Call) (Decision, []Step) {
	facts := p.newFacts(c)
	var steps []Step
	for _, rule := range p.rules {
		step := Step{Rule: rule.Name, Action: rule.Action, Line: rule.Line, Why: rule.missed(c, facts)}
		if step.Why == "" {
			step.Decided, step.Why = true, rule.doubt(facts)
			return rule.decision(), append(steps, step)
		}
		if rule.isAbout(c.Tool, c.Plugin+"/"+c.Tool) {
			steps = append(steps, step)
		}
	}
	d := p.fallback(c)
	return d, append(steps, Step{Rule: d.Rule, Action: d.Action, Decided: true})
}

// missed says why the rule does not decide; empty if it does.
func (r *Rule) missed(c *Call, f *facts) string {
	for _, part := range []struct {
		name  string
		want  []string
		have  string
		match bool
	}{
		{"tools", r.Tools, c.Plugin + "/" + c.Tool, r.isAbout(c.Tool, c.Plugin+"/"+c.Tool)},
		{"doors", r.Doors, c.Door, named(r.Doors, c.Door)},
		{"tenants", r.Tenants, c.Tenant, named(r.Tenants, c.Tenant)},
		{"users", r.Users, c.User, named(r.Users, c.User)},
		{"tokens", r.Tokens, c.Token, named(r.Tokens, c.Token)},
		{"groups", r.Groups, strings.Join(f.groups, ", "), len(r.Groups) == 0 || intersects(r.Groups, f.groups)},
	} {
		if !part.match {
			return fmt.Sprintf("%s: %q is none of %s", part.name, part.have, strings.Join(part.want, ", "))
		}
	}
	met, err := r.met(f)
	switch {
	case err != nil && r.Action == Allow:
		return fmt.Sprintf("when: %s cannot be worked out (%v), and a rule that allows needs to be", r.When, err)
	case err == nil && !met:
		return fmt.Sprintf("when: %s is false", r.When)
	}
	return ""
}

// doubt says why the condition of a rule that decides cannot be worked out; empty if it can.
func (r *Rule) doubt(f *facts) string {
	if _, err := r.met(f); err != nil {
		return fmt.Sprintf("when: %s cannot be worked out (%v), and so it counts as true", r.When, err)
	}
	return ""
}
