// Package policy decides about calls: allow, ask a person, or deny.
//
// A Policy is read from a file of rules with Open, or with OpenLive if the file may change; Policy.Decide decides about
// a Call. The first rule that matches a call decides; if none does, the file's default applies. Conditions beyond names
// are CEL expressions (cel.dev). A rule whose condition cannot be evaluated for a call fails closed: it matches if it
// denies or asks, and does not match if it allows. Policy.Explain and Lint help to write policies.
package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/locale"
)

// Action is the decision about a call.
type Action string

// Actions.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Call is a call about which a policy decides.
type Call struct {
	// Tool is the tool's name in the catalog, or MCP's method for other requests; Plugin is its source.
	Tool, Plugin string
	Annotations  manifest.Annotations
	// Frontend is the frontend of the call. Tenant, User and Token are empty if it does not know them.
	Frontend, Tenant, User, Token string
	// Via is the plugin whose tool makes the call, empty for a call of the frontend.
	Via string
	// Email is the user's e-mail address, if the frontend has it from a source that verified it. Only the employees of
	// a policy refer to it.
	Email string
	// Groups are the groups that the frontend knows, in addition to those of the policy.
	Groups []string
	// Scopes are the scopes of the caller's token.
	Scopes []string
	// Toolset is the name of the toolset that the caller is offered, empty for everything.
	Toolset string
	// Arguments is a JSON object. Nil means that the arguments are not known yet.
	Arguments json.RawMessage
}

// Decision is a decision about a call.
type Decision struct {
	Action Action
	// Rule is the name of the deciding rule, or RuleDefault or RuleChat if no rule of the file decided.
	Rule string
	// Reason is the reason in the rule. It may be empty.
	Reason manifest.Text
	// Approvers may agree to a call that asks. If it is zero, the caller may.
	Approvers People
	// Remember is the time for which a yes covers the same caller and arguments again. Zero covers one call.
	Remember time.Duration
	// MissingScopes are the scopes that the deciding rule names and the caller's token lacks.
	MissingScopes []string
}

// Rules that are not in the file.
const (
	// RuleDefault is the file's default.
	RuleDefault = "default"
	// RuleChat denies destructive tools in Slack, where everybody who can write to the bot could use them.
	RuleChat = "destructive tools in chats"
)

// FrontendSlack is the frontend to which RuleChat applies.
const FrontendSlack = "slack"

// Policy is a set of rules. It is immutable and safe for concurrent use.
type Policy struct {
	id        string
	defaults  Action
	rules     []*Rule
	index     *index
	groups    map[string][]string // user to groups
	employees employees
	// Commands are rules for command lines. The exec broker applies them.
	Commands []judge.Rule
	// Quotas limit how much callers use.
	Quotas []quota.Rule
	// Secrets scans arguments, results and logs for secrets.
	Secrets *secretscan.Scanner

	// mu guards cache, which maps a key to the rules whose names match, and cachedRules, the number of rules in it.
	mu          sync.Mutex
	cache       map[relevantKey][]*Rule
	cachedRules int
}

// maxCacheEntries and maxCachedRules bound the cache. A caller's list of 10,000 tools fits into it.
const (
	maxCacheEntries = 1 << 14
	maxCachedRules  = 1 << 20
)

// relevantKey has everything that the names in rules match.
type relevantKey struct{ tool, plugin, via, frontend, tenant, user, token, groups, scopes string }

// Open reads the policy in the file at path. The error names each wrong place.
func Open(path string) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, readError(err)
	}
	return parseFile(path, data)
}

func readError(err error) error {
	return locale.Text{"en": "policy: %w", "ja": "ポリシー: %w"}.Errorf(err)
}

func parseFile(path string, data []byte) (*Policy, error) {
	p, err := Parse(data)
	if err != nil {
		return nil, locale.Text{"en": "policy %s: %w", "ja": "ポリシー %s: %w"}.Errorf(path, err)
	}
	return p, nil
}

// ID identifies the text of the policy: the beginning of its SHA-256, in hexadecimal. Without a file it is "none".
func (p *Policy) ID() string { return p.id }

// Default is the decision if no rule matches.
func (p *Policy) Default() Action { return p.defaults }

// Decide decides about a call.
func (p *Policy) Decide(c *Call) Decision {
	facts := p.newFacts(c)
	for _, rule := range p.candidates(c, facts.groups) {
		if rule.decides(facts) {
			return rule.decision(c)
		}
	}
	return p.fallback(c)
}

// fallback is the decision if no rule matches.
func (p *Policy) fallback(c *Call) Decision {
	if c.Frontend == FrontendSlack && destructive(c.Annotations) {
		return chatDenial
	}
	return Decision{Action: p.defaults, Rule: RuleDefault}
}

var chatDenial = Decision{Action: Deny, Rule: RuleChat, Reason: manifest.Text{
	"en": "destructive tools are denied in chats unless a rule allows them",
	"ja": "破壊的な操作を行うツールは、ルールで許可しない限りチャットからは使えません",
}}

// Visible reports whether any arguments exist with which the caller may call the tool or ask to. Other tools are not
// listed. Scopes that the caller's token lacks do not hide a tool, because a client can request more (MCP,
// authorization, step-up).
func (p *Policy) Visible(c *Call) bool {
	return p.anyDecision(c, func(a Action) bool { return a != Deny })
}

// MayAsk reports whether any arguments exist with which a call of the tool by the caller asks a person.
func (p *Policy) MayAsk(c *Call) bool {
	return p.anyDecision(c, func(a Action) bool { return a == Ask })
}

// anyDecision reports whether wanted is true for any decision about calls of the tool, if the token has all scopes.
func (p *Policy) anyDecision(c *Call, wanted func(Action) bool) bool {
	unknown := *c
	unknown.Arguments = nil
	facts := p.newFacts(&unknown)
	rules, last := p.candidates(c, facts.groups), wanted(p.fallback(c).Action)
	if !last && !slices.ContainsFunc(rules, func(r *Rule) bool { return wanted(r.Action) }) {
		return false // no need to evaluate conditions
	}
	for _, rule := range rules {
		if rule.Action == Deny && len(rule.MissingScopes) > 0 {
			continue
		}
		may, always := rule.possible(facts)
		switch {
		case may && wanted(rule.Action):
			return true
		case always:
			return false
		}
	}
	return last
}

// Prospect is a possible decision about calls of a tool.
type Prospect struct {
	Decision
	// When is the rule's condition on the arguments; empty if they do not matter. Line is the line of the rule in its
	// file.
	When string
	Line int
}

// Prospects returns the possible decisions about calls of the tool by the caller, in the order in which the rules are
// evaluated. The last one applies if none of the conditions before it is true.
func (p *Policy) Prospects(c *Call) []Prospect {
	unknown := *c
	unknown.Arguments = nil
	facts := p.newFacts(&unknown)
	var list []Prospect
	for _, rule := range p.candidates(c, facts.groups) {
		may, always := rule.possible(facts)
		if always {
			return append(list, Prospect{Decision: rule.decision(c), Line: rule.Line})
		}
		if may {
			list = append(list, Prospect{rule.decision(c), rule.When, rule.Line})
		}
	}
	return append(list, Prospect{Decision: p.fallback(c)})
}

// possible reports, while the arguments are unknown, whether the rule may decide about a call whose names match, and
// whether it always does.
func (r *Rule) possible(f *facts) (may, always bool) {
	if r.onArguments {
		return true, false
	}
	met, err := r.evaluate(f)
	if err != nil && slices.Contains(r.variables, "arguments") {
		return true, false
	}
	decides := met || err != nil && r.Action != Allow
	return decides, decides
}

// candidates returns the rules whose names match, in order. They are cached: the same callers call the same tools.
func (p *Policy) candidates(c *Call, groups []string) []*Rule {
	key := relevantKey{c.Tool, c.Plugin, c.Via, c.Frontend, c.Tenant, c.User, c.Token, listed(c.Groups),
		listed(c.Scopes)}
	p.mu.Lock()
	defer p.mu.Unlock()
	rules, ok := p.cache[key]
	if ok {
		return rules
	}
	full := c.Plugin + "/" + c.Tool
	for _, i := range p.index.find(c, full, groups) {
		if rule := p.rules[i]; rule.differing(c, full, groups) == "" {
			rules = append(rules, rule)
		}
	}
	if len(p.cache) >= maxCacheEntries || p.cachedRules >= maxCachedRules {
		clear(p.cache)
		p.cachedRules = 0
	}
	p.cache[key] = rules
	p.cachedRules += len(rules)
	return rules
}

// listed encodes names unambiguously.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", names)
}

// GroupsOf returns the groups of the call's user: those that the frontend knows, then those of the policy.
func (p *Policy) GroupsOf(c *Call) []string {
	if c.User == "" {
		return c.Groups
	}
	return append(append([]string(nil), c.Groups...), p.groups[c.User]...)
}

// employeeOf returns the employee ID of the call's user in the HR tools, or "" if the policy has none.
func (p *Policy) employeeOf(c *Call) string { return p.employees.of(c) }

// MayApprove reports whether user may agree to a call that asks, which was made by asker. groups are those that the
// frontend knows.
func (p *Policy) MayApprove(d Decision, asker, user string, groups []string) bool {
	if d.Approvers.IsZero() {
		return user == asker
	}
	return d.Approvers.Has(user, p.GroupsOf(&Call{User: user, Groups: groups}))
}

// destructive is MCP's destructiveHint with its default.
func destructive(a manifest.Annotations) bool {
	return !hint(a.ReadOnlyHint, false) && hint(a.DestructiveHint, true)
}

func hint(h *bool, otherwise bool) bool {
	if h == nil {
		return otherwise
	}
	return *h
}
