package policy

import (
	"fmt"
	"strings"
)

// Step is a rule that was evaluated on the way to a decision.
type Step struct {
	Rule   string
	Action Action
	// Line is the line of the rule in its file, counted from 1. Zero means that it is not in the file.
	Line int
	// Decided says that this rule decided. Otherwise Why says why it did not. A deciding rule whose condition could not
	// be evaluated has a Why too.
	Decided bool
	Why     string
}

// Explain decides about a call as Decide does, and returns the evaluated rules. Other rules are included if they match
// the tool.
func (p *Policy) Explain(c *Call) (Decision, []Step) {
	facts := p.newFacts(c)
	var steps []Step
	for _, rule := range p.rules {
		step := Step{Rule: rule.Name, Action: rule.Action, Line: rule.Line, Why: rule.mismatch(c, facts)}
		if step.Why == "" {
			step.Decided, step.Why = true, rule.evaluationError(facts)
			return rule.decision(c), append(steps, step)
		}
		if rule.matchesTool(c.Tool, c.Plugin+"/"+c.Tool) {
			steps = append(steps, step)
		}
	}
	d := p.fallback(c)
	return d, append(steps, Step{Rule: d.Rule, Action: d.Action, Decided: true})
}

// mismatch says why the rule does not decide; empty if it does.
func (r *Rule) mismatch(c *Call, f *facts) string {
	for _, part := range []struct {
		name  string
		want  []string
		have  string
		match bool
	}{
		{"tools", r.Tools, c.Plugin + "/" + c.Tool, r.matchesTool(c.Tool, c.Plugin+"/"+c.Tool)},
		{"frontends", r.Frontends, c.Frontend, containsOrAny(r.Frontends, c.Frontend)},
		{"tenants", r.Tenants, c.Tenant, containsOrAny(r.Tenants, c.Tenant)},
		{"users", r.Users, c.User, containsOrAny(r.Users, c.User)},
		{"tokens", r.Tokens, c.Token, containsOrAny(r.Tokens, c.Token)},
		{"groups", r.Groups, strings.Join(f.groups, ", "), len(r.Groups) == 0 || intersects(r.Groups, f.groups)},
	} {
		if !part.match && part.have == "" {
			return fmt.Sprintf("%q does not match: the call has none, the rule wants %s",
				part.name, strings.Join(part.want, " or "))
		}
		if !part.match {
			return fmt.Sprintf("%q does not match: the call has %s, the rule wants %s",
				part.name, part.have, strings.Join(part.want, " or "))
		}
	}
	if len(r.MissingScopes) > 0 && len(without(r.MissingScopes, c.Scopes)) == 0 {
		return fmt.Sprintf(`"missingScopes" does not match: the token has %s`, strings.Join(r.MissingScopes, " and "))
	}
	met, err := r.evaluate(f)
	switch {
	case err != nil && r.Action == Allow:
		return fmt.Sprintf(`"when" cannot be evaluated (%v), and a rule that allows needs it: %s`, err, r.When)
	case err == nil && !met:
		return fmt.Sprintf(`"when" is false: %s`, r.When)
	}
	return ""
}

// evaluationError says why the condition of a deciding rule cannot be evaluated; empty if it can.
func (r *Rule) evaluationError(f *facts) string {
	if _, err := r.evaluate(f); err != nil {
		return fmt.Sprintf(`"when" cannot be evaluated (%v), and so counts as true: %s`, err, r.When)
	}
	return ""
}
