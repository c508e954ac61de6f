package policy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Explanation says what happens to a call, which rule decides it, and why the rules before it do not. NewExplanation
// makes one.
type Explanation struct {
	Tool     string `json:"tool"`
	Plugin   string `json:"plugin"`
	Frontend string `json:"frontend"`
	// Via is the plugin whose tool makes the call.
	Via    string `json:"via,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	User   string `json:"user,omitempty"`
	// Groups are the groups of the call and those that the policy puts the user in.
	Groups []string `json:"groups,omitempty"`
	// Employee is the user's id in the HR tools, by the employees of the policy.
	Employee string `json:"employee,omitempty"`
	// Scopes are those of the caller's token.
	Scopes    []string        `json:"scopes,omitempty"`
	Token     string          `json:"token,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Listed says that the caller sees the tool in lists.
	Listed bool `json:"listed"`
	// Decision is nil if it depends on the arguments and they are unknown. Then Prospects are the possible decisions.
	Decision  *ExplainedDecision  `json:"decision,omitempty"`
	Prospects []ExplainedDecision `json:"prospects,omitempty"`
	// Passed are the rules about the tool that were evaluated before and did not match.
	Passed []UnmatchedRule `json:"passed,omitempty"`
}

// ExplainedDecision is a decision with the place of its rule.
type ExplainedDecision struct {
	Action    Action `json:"action"`
	Rule      string `json:"rule"`
	Line      int    `json:"line,omitempty"`
	When      string `json:"when,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Approvers People `json:"approvers,omitzero"`
	// MissingScopes are the scopes that the rule names and the caller's token lacks.
	MissingScopes []string `json:"missingScopes,omitempty"`
	// Remember is a duration, such as "10m0s".
	Remember string `json:"remember,omitempty"`
	// Doubt says why When could not be evaluated.
	Doubt string `json:"doubt,omitempty"`
}

// UnmatchedRule is a rule that did not match, with the condition that failed.
type UnmatchedRule struct {
	Rule string `json:"rule"`
	Line int    `json:"line,omitempty"`
	Why  string `json:"why"`
	*Mismatch
}

// NewExplanation explains what p decides about c. A call with nil Arguments has unknown ones. locale is the language of
// the reasons.
func NewExplanation(p *Policy, c *Call, locale string) *Explanation {
	e := &Explanation{
		Tool: c.Tool, Plugin: c.Plugin, Frontend: c.Frontend, Via: c.Via, Tenant: c.Tenant, User: c.User, Groups: p.GroupsOf(c),
		Employee: p.EmployeeOf(c), Scopes: c.Scopes, Token: c.Token, Arguments: c.Arguments, Listed: p.Visible(c),
	}
	if prospects := p.Prospects(c); c.Arguments == nil && len(prospects) > 1 {
		for _, prospect := range prospects {
			e.Prospects = append(e.Prospects, prospect.Explain(locale))
		}
		return e // which rules match depends on the arguments too
	}
	result, steps := p.Explain(c, locale)
	for _, step := range steps {
		if !step.Decided {
			e.Passed = append(e.Passed, UnmatchedRule{step.Rule, step.Line, step.Mismatch.String(), step.Mismatch})
		}
	}
	last := steps[len(steps)-1]
	d := Prospect{Decision: result, Line: last.Line}.Explain(locale)
	if last.Doubt != "" {
		d.When, d.Doubt = last.When, last.Doubt
	}
	e.Decision = &d
	return e
}

// Explain returns the decision in a form to show. locale is the language of its reason.
func (p Prospect) Explain(locale string) ExplainedDecision {
	d := ExplainedDecision{
		Action: p.Action, Rule: p.Rule, Line: p.Line, When: p.When, Reason: p.Reason.In(locale), Approvers: p.Approvers,
		MissingScopes: p.MissingScopes,
	}
	if p.Remember > 0 {
		d.Remember = p.Remember.String()
	}
	return d
}

// maxUnmatched limits the unmatched rules that Text names.
const maxUnmatched = 8

// Text returns the explanation in English: a sentence, and a line for each rule that did not match. file is the file of
// the policy.
func (e *Explanation) Text(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of the plugin %s, called by %s, ", e.Tool, e.Plugin, e.caller())
	if e.Decision != nil {
		b.WriteString(e.Decision.text(file) + ".")
	} else {
		b.WriteString("depends on the arguments: it ")
		for i, d := range e.Prospects {
			if i > 0 {
				b.WriteString("; else it ")
			}
			b.WriteString(d.text(file))
		}
		b.WriteString(".")
	}
	if !e.Listed {
		b.WriteString(" The caller does not see the tool in lists.")
	}
	if len(e.Passed) > 0 {
		b.WriteString("\nThe rules before it do not match:")
	}
	for i, rule := range e.Passed {
		if i == maxUnmatched {
			fmt.Fprintf(&b, "\n  and %d more, which --json lists", len(e.Passed)-maxUnmatched)
			break
		}
		fmt.Fprintf(&b, "\n  %q (%s:%d): %s", rule.Rule, filepath.Base(file), rule.Line, rule.Why)
	}
	return b.String()
}

func (e *Explanation) caller() string {
	text := "a caller without a name"
	if e.User != "" {
		text = e.User
	}
	if len(e.Groups) > 0 {
		text += " of " + strings.Join(e.Groups, ", ")
	}
	if e.Employee != "" {
		text += ", employee " + e.Employee + ","
	}
	text += " at " + e.Frontend
	if e.Tenant != "" {
		text += " for the tenant " + e.Tenant
	}
	if e.Via != "" {
		text += " through a tool of the plugin " + e.Via
	}
	return text
}

func (d *ExplainedDecision) text(file string) string {
	text := map[Action]string{
		Allow: "is allowed by ", Ask: "waits for a person's yes by ", Deny: "is denied by ",
	}[d.Action]
	switch {
	case d.Line > 0:
		text += fmt.Sprintf("the rule %q (%s:%d)", d.Rule, filepath.Base(file), d.Line)
	case d.Rule == RuleDefault:
		text += "the default"
	default:
		text += fmt.Sprintf("hako's own rule %q", d.Rule)
	}
	if len(d.MissingScopes) > 0 {
		text += ", because the token lacks the scope " + strings.Join(d.MissingScopes, " ")
	}
	if d.When != "" && d.Doubt == "" {
		text += " where " + d.When
	}
	if d.Action == Ask {
		who := "the caller"
		if !d.Approvers.IsZero() {
			who = strings.ReplaceAll(d.Approvers.In("en"), ", ", " or ")
		}
		text += ", which " + who + " may give"
		if remember, err := time.ParseDuration(d.Remember); err == nil {
			text += " for " + shortDuration(remember)
		}
	}
	if d.Doubt != "" {
		text += fmt.Sprintf(", whose \"when\" cannot be evaluated (%s), and so counts as true: %s", d.Doubt, d.When)
	}
	if d.Reason != "" {
		text += fmt.Sprintf(" (%s)", d.Reason)
	}
	return text
}

// shortDuration omits zeros: "10m" instead of "10m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Permissions of a tool, for its callers.
const (
	PermissionAllow   = "allow"
	PermissionDeny    = "deny"
	PermissionConfirm = "requires_confirmation"
	PermissionDepends = "depends" // on the arguments
)

// Permission names an action as tool_permissions does.
func (a Action) Permission() string {
	return map[Action]string{Allow: PermissionAllow, Ask: PermissionConfirm, Deny: PermissionDeny}[a]
}

// ToolPermission says whether a caller may call a tool.
type ToolPermission struct {
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	// Permission is one of the constants above.
	Permission string              `json:"permission"`
	Prospects  []ExplainedDecision `json:"prospects"`
}

// PermissionOf returns what happens to calls like c, whose arguments do not matter. locale is the language of reasons.
func (p *Policy) PermissionOf(c *Call, locale string) ToolPermission {
	t := ToolPermission{Tool: c.Tool, Plugin: c.Plugin}
	for _, prospect := range p.Prospects(c) {
		t.Prospects = append(t.Prospects, prospect.Explain(locale))
		if word := prospect.Action.Permission(); t.Permission == "" || t.Permission == word {
			t.Permission = word
		} else {
			t.Permission = PermissionDepends
		}
	}
	return t
}
