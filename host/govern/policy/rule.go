package policy

import (
	"slices"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/toolpattern"
)

// Rule decides about some calls. It matches a call if all of its non-empty fields do.
type Rule struct {
	Name   string
	Action Action
	// Line is the line of the rule in its file, counted from 1.
	Line int
	// Tools are patterns for TOOL, or with a "/" for PLUGIN/TOOL; "*" matches any text. Frontends, Tenants, Users,
	// Groups and Tokens are names. Via are plugins whose tools make the call.
	Tools                                          []string
	Via, Frontends, Tenants, Users, Groups, Tokens []string
	// MissingScopes match calls whose token lacks at least one of them, and calls without a token.
	MissingScopes []string
	// When is a CEL expression. Empty means always.
	When      string
	Reason    manifest.Text
	Approvers People
	Remember  time.Duration

	path     string // in the file
	patterns []toolpattern.Pattern
	compiledCondition
}

// compile compiles the patterns and the condition of the rule. known has the conditions compiled before, by their
// texts: policies repeat few conditions in many rules.
func (r *Rule) compile(known map[string]compiledCondition) (err error) {
	for _, text := range r.Tools {
		r.patterns = append(r.patterns, toolpattern.Compile(text))
	}
	compiled, ok := known[r.When]
	if !ok && r.When != "" {
		if compiled, err = compileCondition(r.When); err != nil {
			return err
		}
		known[r.When] = compiled
	}
	r.compiledCondition = compiled
	return nil
}

// differing returns the first field that does not match, by its key in the file. It is empty if all fields but the
// condition match. full is PLUGIN/TOOL.
func (r *Rule) differing(c *Call, full string, groups []string) (field string) {
	switch {
	case !r.matchesTool(c.Tool, full):
		return "tools"
	case !containsOrAny(r.Via, c.Via):
		return "via"
	case !containsOrAny(r.Frontends, c.Frontend):
		return "frontends"
	case !containsOrAny(r.Tenants, c.Tenant):
		return "tenants"
	case !containsOrAny(r.Users, c.User):
		return "users"
	case !containsOrAny(r.Tokens, c.Token):
		return "tokens"
	case len(r.Groups) > 0 && !intersects(r.Groups, groups):
		return "groups"
	case len(r.MissingScopes) > 0 && len(without(r.MissingScopes, c.Scopes)) == 0:
		return "missingScopes"
	}
	return ""
}

// matchesTool reports whether one of the patterns matches the tool.
func (r *Rule) matchesTool(tool, full string) bool {
	for i := range r.patterns {
		if r.patterns[i].MatchesTool(tool, full) {
			return true
		}
	}
	return len(r.patterns) == 0
}

func containsOrAny(names []string, name string) bool { return len(names) == 0 || contains(names, name) }

func contains(list []string, s string) bool { return s != "" && slices.Contains(list, s) }

// without returns the entries of list that are not in other.
func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// decides reports whether the rule decides about a call whose names match. A condition that cannot be evaluated fails
// closed.
func (r *Rule) decides(f *facts) bool {
	met, err := r.evaluate(f)
	return met || err != nil && r.Action != Allow
}

func (r *Rule) decision(c *Call) Decision {
	return Decision{Action: r.Action, Rule: r.Name, Reason: r.Reason, Approvers: r.Approvers, Remember: r.Remember,
		MissingScopes: without(r.MissingScopes, c.Scopes)}
}
