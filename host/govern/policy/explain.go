package policy

import (
	"strings"

	"github.com/hako-run/hako/pdk/locale"
)

// Step is a rule that was evaluated on the way to a decision.
type Step struct {
	Rule string
	// Line is the line of the rule in its file, counted from 1. Zero means that it is not in the file.
	Line int
	// Decided reports whether this rule decided. Otherwise Mismatch is the reason.
	Decided  bool
	Mismatch *Mismatch
	// When is the condition of the deciding rule. Doubt explains why it could not be evaluated.
	When, Doubt string
}

// Explain decides about a call as Decide does, and returns the evaluated rules. Other rules are included if they match
// the tool. language, a BCP 47 tag, is the language of the reasons.
func (p *Policy) Explain(c *Call, language string) (Decision, []Step) {
	facts := p.newFacts(c)
	var steps []Step
	for _, rule := range p.rules {
		step := Step{Rule: rule.Name, Line: rule.Line, Mismatch: rule.mismatch(c, facts, language)}
		if step.Mismatch == nil {
			step.Decided, step.When, step.Doubt = true, rule.When, rule.evaluationError(facts, language)
			return rule.decision(c), append(steps, step)
		}
		if rule.matchesTool(c.Tool, c.Plugin+"/"+c.Tool) {
			steps = append(steps, step)
		}
	}
	d := p.fallback(c)
	return d, append(steps, Step{Rule: d.Rule, Decided: true})
}

// Mismatch is a field of a rule that does not match a call.
type Mismatch struct {
	// Field is the key of the field in the file.
	Field string `json:"field"`
	// Have is the call's value; empty if it has none. Want is the rule's.
	Have string   `json:"have,omitempty"`
	Want []string `json:"want"`
	// Problem explains why a condition could not be evaluated.
	Problem string `json:"problem,omitempty"`
}

// The reasons of a mismatch. Their values are in the order of the English.
var (
	mismatchDoubt = locale.Text{
		"en": `"when" cannot be evaluated (%s), and a rule that allows needs it: %s`,
		"ja": `"when" を評価できません (%s)。許可するルールでは評価できる必要があります: %s`,
	}
	mismatchWhen   = locale.Text{"en": `"when" is false: %s`, "ja": `"when" が成り立ちません: %s`}
	mismatchScopes = locale.Text{
		"en": `"missingScopes" does not match: the token has %s`,
		"ja": `"missingScopes" が一致しません: トークンに %s があります`,
	}
	mismatchNone = locale.Text{
		"en": "%q does not match: the call has none, the rule wants %s",
		"ja": "%q が一致しません: 呼び出しに指定がなく、ルールは %s を求めています",
	}
	mismatchOther = locale.Text{
		"en": "%q does not match: the call has %s, the rule wants %s",
		"ja": "%q が一致しません: 呼び出しは %s、ルールは %s を求めています",
	}
)

// In returns the reason in a language, a BCP 47 tag.
func (m *Mismatch) In(language string) string {
	want := strings.Join(m.Want, sayOr.In(language))
	switch {
	case m.Problem != "":
		return say(language, mismatchDoubt, m.Problem, want)
	case m.Field == "when":
		return say(language, mismatchWhen, want)
	case m.Field == "missingScopes":
		return say(language, mismatchScopes, m.Have)
	case m.Have == "":
		return say(language, mismatchNone, m.Field, want)
	}
	return say(language, mismatchOther, m.Field, m.Have, want)
}

// mismatch explains why the rule does not decide; nil if it does.
func (r *Rule) mismatch(c *Call, f *facts, language string) *Mismatch {
	full := c.Plugin + "/" + c.Tool
	if field := r.differing(c, full, f.groups); field != "" {
		m := map[string]Mismatch{
			"tools":         {Have: full, Want: r.Tools},
			"via":           {Have: c.Via, Want: r.Via},
			"frontends":     {Have: c.Frontend, Want: r.Frontends},
			"tenants":       {Have: c.Tenant, Want: r.Tenants},
			"users":         {Have: c.User, Want: r.Users},
			"tokens":        {Have: c.Token, Want: r.Tokens},
			"groups":        {Have: strings.Join(f.groups, ", "), Want: r.Groups},
			"missingScopes": {Have: strings.Join(r.MissingScopes, " and "), Want: r.MissingScopes},
		}[field]
		m.Field = field
		return &m
	}
	met, err := r.evaluate(f)
	switch {
	case err != nil && r.Action == Allow:
		return &Mismatch{Field: "when", Want: []string{r.When}, Problem: locale.In(err, language)}
	case err == nil && !met:
		return &Mismatch{Field: "when", Want: []string{r.When}}
	}
	return nil
}

// evaluationError explains why the condition of a deciding rule cannot be evaluated; empty if it can.
func (r *Rule) evaluationError(f *facts, language string) string {
	_, err := r.evaluate(f)
	return locale.In(err, language)
}
