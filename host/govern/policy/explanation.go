package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/pdk/locale"
)

// Explanation is the decision on a call, the rule that decides it, and why the rules before it do not. NewExplanation
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
	// Scopes are the scopes of the caller's token.
	Scopes    []string        `json:"scopes,omitempty"`
	Token     string          `json:"token,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Listed reports whether the caller sees the tool in lists.
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
	// Doubt explains why When could not be evaluated.
	Doubt string `json:"doubt,omitempty"`
}

// UnmatchedRule is a rule that did not match, with the condition that failed.
type UnmatchedRule struct {
	Rule string `json:"rule"`
	Line int    `json:"line,omitempty"`
	Why  string `json:"why"`
	*Mismatch
}

// NewExplanation explains what p decides about c. A call with nil Arguments has unknown ones. language, a BCP 47 tag,
// is that of the reasons.
func NewExplanation(p *Policy, c *Call, language string) *Explanation {
	e := &Explanation{
		Tool: c.Tool, Plugin: c.Plugin, Frontend: c.Frontend, Via: c.Via, Tenant: c.Tenant,
		User: c.User, Groups: p.GroupsOf(c),
		Employee: p.employeeOf(c), Scopes: c.Scopes, Token: c.Token, Arguments: c.Arguments, Listed: p.Visible(c),
	}
	if prospects := p.Prospects(c); c.Arguments == nil && len(prospects) > 1 {
		for _, prospect := range prospects {
			e.Prospects = append(e.Prospects, prospect.Explain(language))
		}
		return e // which rules match depends on the arguments too
	}
	result, steps := p.Explain(c, language)
	for _, step := range steps {
		if !step.Decided {
			e.Passed = append(e.Passed, UnmatchedRule{step.Rule, step.Line, step.Mismatch.In(language), step.Mismatch})
		}
	}
	last := steps[len(steps)-1]
	d := Prospect{Decision: result, Line: last.Line}.Explain(language)
	if last.Doubt != "" {
		d.When, d.Doubt = last.When, last.Doubt
	}
	e.Decision = &d
	return e
}

// Explain returns the decision in a form to show. language is the language of its reason.
func (p Prospect) Explain(language string) ExplainedDecision {
	d := ExplainedDecision{
		Action: p.Action, Rule: p.Rule, Line: p.Line, When: p.When,
		Reason: p.Reason.In(language), Approvers: p.Approvers,
		MissingScopes: p.MissingScopes,
	}
	if p.Remember > 0 {
		d.Remember = p.Remember.String()
	}
	return d
}

// maxUnmatched limits the unmatched rules that Text names.
const maxUnmatched = 8

// The sentences of an explanation. Their values are in the order of the English.
var (
	sayWhole = locale.Text{
		"en": "%s of the plugin %s, called by %s, %s.", "ja": "%[3]s が %[1]s (プラグイン %[2]s) を呼び出すと、%[4]s。",
	}
	sayDepends  = locale.Text{"en": "depends on the arguments: it %s", "ja": "結果は引数によって変わります。%s"}
	sayElse     = locale.Text{"en": "; else it ", "ja": "。それ以外では、"}
	sayUnlisted = locale.Text{
		"en": " The caller does not see the tool in lists.", "ja": "このツールは呼び出し元の一覧に表示されません。",
	}
	sayPassed = locale.Text{"en": "The rules before it do not match:", "ja": "先に評価され、一致しなかったルール:"}
	sayMore   = locale.Text{"en": "and %d more, which --json lists", "ja": "ほか %d 件 (--json ですべて表示します)"}

	sayNobody   = locale.Text{"en": "a caller without a name", "ja": "名前のない呼び出し元"}
	sayGroups   = locale.Text{"en": " of %s", "ja": "グループ %s"}
	sayEmployee = locale.Text{"en": ", employee %s,", "ja": "従業員 %s"}
	sayFrontend = locale.Text{"en": " at %s", "ja": "フロントエンド %s"}
	sayTenant   = locale.Text{"en": " for the tenant %s", "ja": "テナント %s"}
	sayVia      = locale.Text{"en": " through a tool of the plugin %s", "ja": "プラグイン %s のツール経由"}

	sayAction = map[Action]locale.Text{
		Allow: {"en": "is allowed by %s", "ja": "%sにより許可されます"},
		Ask:   {"en": "requires approval under %s", "ja": "%sにより人の承認を待ちます"},
		Deny:  {"en": "is denied by %s", "ja": "%sにより拒否されます"},
	}
	sayRule     = locale.Text{"en": "the rule %q (%s:%d)", "ja": "ルール %q (%s:%d) "}
	sayDefault  = locale.Text{"en": "the default", "ja": "既定の動作"}
	sayOwn      = locale.Text{"en": "hako's own rule %q", "ja": "hako のルール %q "}
	sayScopes   = locale.Text{"en": ", because the token lacks the scope %s", "ja": "トークンにスコープ %s がないため"}
	sayWhen     = locale.Text{"en": " where %s", "ja": "条件: %s"}
	sayApprover = locale.Text{"en": ", which %s may give", "ja": "承認できる人: %s"}
	sayCaller   = locale.Text{"en": "the caller", "ja": "呼び出し元"}
	sayOr       = locale.Text{"en": " or ", "ja": "、"}
	sayRemember = locale.Text{"en": " for %s", "ja": "承認の有効期間: %s"}
	sayDoubt    = locale.Text{
		"en": `, whose "when" cannot be evaluated (%s), and so counts as true: %s`,
		"ja": `"when" を評価できないため (%s) 成り立つとみなします: %s`,
	}
	sayReason = locale.Text{"en": " (%s)", "ja": "理由: %s"}
)

func say(language string, text locale.Text, values ...any) string {
	return fmt.Sprintf(text.In(language), values...)
}

// sayWith returns a text with details, which are in brackets in Japanese.
func sayWith(language, text string, details []string) string {
	if !lang.Japanese(language) {
		return text + strings.Join(details, "")
	}
	if len(details) == 0 {
		return text
	}
	return text + " (" + strings.Join(details, "、") + ")"
}

// Text returns the explanation in a language, a BCP 47 tag: a sentence, and a line for each rule that did not match.
// file is the file of the policy.
func (e *Explanation) Text(file, language string) string {
	var what string
	if e.Decision != nil {
		what = e.Decision.text(file, language)
	} else {
		var all []string
		for _, d := range e.Prospects {
			all = append(all, d.text(file, language))
		}
		what = say(language, sayDepends, strings.Join(all, sayElse.In(language)))
	}
	var b strings.Builder
	b.WriteString(say(language, sayWhole, e.Tool, e.Plugin, e.caller(language), what))
	if !e.Listed {
		b.WriteString(sayUnlisted.In(language))
	}
	if len(e.Passed) > 0 {
		b.WriteString("\n" + sayPassed.In(language))
	}
	for i, rule := range e.Passed {
		if i == maxUnmatched {
			b.WriteString("\n  " + say(language, sayMore, len(e.Passed)-maxUnmatched))
			break
		}
		fmt.Fprintf(&b, "\n  %q (%s:%d): %s", rule.Rule, filepath.Base(file), rule.Line, rule.Why)
	}
	return b.String()
}

func (e *Explanation) caller(language string) string {
	var known []string
	for _, part := range []struct {
		text  locale.Text
		value string
	}{
		{sayGroups, strings.Join(e.Groups, ", ")}, {sayEmployee, e.Employee}, {sayFrontend, e.Frontend},
		{sayTenant, e.Tenant}, {sayVia, e.Via},
	} {
		if part.value != "" {
			known = append(known, say(language, part.text, part.value))
		}
	}
	return sayWith(language, cmp.Or(e.User, sayNobody.In(language)), known)
}

func (d *ExplainedDecision) text(file, language string) string {
	by := say(language, sayOwn, d.Rule)
	switch {
	case d.Line > 0:
		by = say(language, sayRule, d.Rule, filepath.Base(file), d.Line)
	case d.Rule == RuleDefault:
		by = sayDefault.In(language)
	}
	var details []string
	add := func(text locale.Text, values ...any) { details = append(details, say(language, text, values...)) }
	if len(d.MissingScopes) > 0 {
		add(sayScopes, strings.Join(d.MissingScopes, " "))
	}
	if d.When != "" && d.Doubt == "" {
		add(sayWhen, d.When)
	}
	if d.Action == Ask {
		names := strings.ReplaceAll(d.Approvers.In(language), ", ", sayOr.In(language))
		add(sayApprover, cmp.Or(names, sayCaller.In(language)))
		if remember, err := time.ParseDuration(d.Remember); err == nil {
			add(sayRemember, shortDuration(remember))
		}
	}
	if d.Doubt != "" {
		add(sayDoubt, d.Doubt, d.When)
	}
	if d.Reason != "" {
		add(sayReason, d.Reason)
	}
	return sayWith(language, say(language, sayAction[d.Action], by), details)
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
