package policy

import (
	"encoding/json"
	"maps"
	"slices"
)

// PastCall is a recorded call, of which less may be known than conditions need.
type PastCall struct {
	// Call is the call as recorded. Arguments has the recorded fields of the arguments.
	Call
	// NoHints reports whether the annotations of the tool are not known.
	NoHints bool
	// By is the policy that decided, with the rule Rule. Nil means that it is not known any more.
	By   *Policy
	Rule string
}

// hintVariables are the variables that come from the annotations of a tool.
var hintVariables = []string{"readOnly", "destructive", "idempotent", "openWorld"}

// Redecide returns the possible decisions about a past call, as Prospects does for arguments that are unknown. If there
// is more than one, unknown has the variables of conditions that were not recorded.
//
// A condition on something that was not recorded is known if it follows from the rule that decided: the
// conditions of the rules before it were not.
func (p *Policy) Redecide(c *PastCall) (list []Prospect, unknown []string) {
	facts := p.newFacts(&c.Call)
	facts.hidden = map[string]bool{}
	if p.employees.needsEmail(&c.Call) {
		facts.hidden["caller"] = true
	}
	for _, name := range hintVariables {
		facts.hidden[name] = c.NoHints
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(c.Arguments, &given) // of a digest nothing is given
	met := c.conditions()
	samePeople := c.By != nil && p.samePeople(c.By, &c.Call)
	for _, rule := range p.candidates(&c.Call, facts.groups) {
		facts.hidden["arguments"] = !rule.onlyOn(given)
		value, err := rule.evaluate(facts)
		decides := value || err != nil && rule.Action != Allow
		if missing := rule.uses(facts.hidden); err != nil && len(missing) > 0 {
			was, known := met[rule.condition()]
			if !known || !samePeople && len(rule.uses(map[string]bool{"groups": true, "caller": true})) > 0 {
				list = append(list, Prospect{rule.decision(&c.Call), rule.When, rule.Line})
				unknown = append(unknown, missing...)
				continue
			}
			decides = was
		}
		if decides {
			return append(list, Prospect{Decision: rule.decision(&c.Call), Line: rule.Line}), unknown
		}
	}
	if c.NoHints && c.Frontend == FrontendSlack {
		list = append(list, Prospect{Decision: chatDenial})
		unknown = append(unknown, "destructive")
		return append(list, Prospect{Decision: Decision{Action: p.defaults, Rule: RuleDefault}}), unknown
	}
	return append(list, Prospect{Decision: p.fallback(&c.Call)}), unknown
}

// condition identifies the condition of a rule, with what becomes of the rule if it cannot be evaluated.
type condition struct {
	when   string
	allows bool
}

func (r *Rule) condition() condition { return condition{r.When, r.Action == Allow} }

// conditions returns which conditions were met, as far as that follows from the rule that decided.
func (c *PastCall) conditions() map[condition]bool {
	if c.By == nil {
		return nil
	}
	met := map[condition]bool{}
	for _, rule := range c.By.candidates(&c.Call, c.By.GroupsOf(&c.Call)) {
		met[rule.condition()] = rule.Name == c.Rule
		if rule.Name == c.Rule {
			return met
		}
	}
	if c.Rule != RuleDefault && c.Rule != RuleChat {
		return nil // the record contradicts the policy
	}
	return met
}

// samePeople reports whether both policies have the same groups and employee for the call's user.
func (p *Policy) samePeople(other *Policy, c *Call) bool {
	return slices.Equal(p.GroupsOf(c), other.GroupsOf(c)) && p.employeeOf(c) == other.employeeOf(c) &&
		maps.Equal(p.employees.byEmail, other.employees.byEmail)
}

// needsEmail reports whether the employee depends on the caller's address, which the call does not have.
func (e employees) needsEmail(c *Call) bool {
	return c.Frontend == FrontendSlack && c.Email == "" && len(e.byEmail) > 0 && e.byUser[c.User] == ""
}

// uses returns the variables with the value true that the rule's condition uses.
func (r *Rule) uses(variables map[string]bool) (used []string) {
	for _, name := range r.variables {
		if variables[name] {
			used = append(used, name)
		}
	}
	return used
}

// onlyOn reports whether the rule's condition uses no other arguments than those that are given.
func (r *Rule) onlyOn(given map[string]json.RawMessage) bool {
	return !r.wholeArguments && !slices.ContainsFunc(r.fields, func(name string) bool {
		_, ok := given[name]
		return !ok
	})
}
