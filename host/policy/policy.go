// Package policy decides about calls: allow, ask a person, or deny.
//
// A Policy is a file of rules that people write, review and keep in git. The first rule, from the top, that matches a call decides; what
// no rule decides, the file's default does. Conditions beyond names are CEL expressions (cel.dev). A rule whose condition cannot be
// worked out for a call fails closed: it matches if it denies or asks, and does not if it allows.
package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/broker/exec/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/quota"
	"github.com/hako-run/hako/host/secretscan"
)

// Action is what becomes of a call.
type Action string

// Actions.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// Call is what is decided about.
type Call struct {
	// Tool is the name at the doors, Plugin who serves it.
	Tool, Plugin string
	Annotations  manifest.Annotations
	// Door is where the call came in; Tenant, User and Token are empty where the door knows none.
	Door, Tenant, User, Token string
	// Groups are those that the door knows of, besides those of the policy.
	Groups []string
	// Arguments is a JSON object. Nil means that they are not known yet.
	Arguments json.RawMessage
}

// Decision is what the policy says of a call.
type Decision struct {
	Action Action
	// Rule is the name of the rule that decided; RuleDefault or RuleChat if none of the file's did.
	Rule string
	// Reason is the rule's own. It may be empty.
	Reason manifest.Text
	// Approvers are those of whom one has to say yes to a call that asks. Nobody means the caller.
	Approvers People
	// Remember is for how long a yes holds for the same caller and arguments. Zero means for the one call.
	Remember time.Duration
}

// Rules that are not in the file.
const (
	// RuleDefault is the file's default.
	RuleDefault = "default"
	// RuleChat denies destructive tools in chats, where whoever can write to the bot could use them.
	RuleChat = "destructive tools in chats"
)

// DoorSlack is the door to which RuleChat applies.
const DoorSlack = "slack"

// Policy is a set of rules. It is safe for concurrent use, and does not change.
type Policy struct {
	defaults Action
	rules    []*Rule
	index    *index
	groups   map[string][]string // user to groups
	// employees are the ids of users in the HR tools.
	employees map[string]string
	// Commands are rules for command lines, which the exec broker applies.
	Commands []judge.Rule
	// Quotas limit how much callers use.
	Quotas []quota.Rule
	// Secrets looks for secrets in what calls carry.
	Secrets *secretscan.Scanner

	// mu guards relevant, which remembers the rules whose names match a call, and remembered, how many rules there are in it.
	mu         sync.Mutex
	relevant   map[identity][]*Rule
	remembered int
}

// maxRelevant and maxRemembered bound what is remembered, in callers of a tool and in rules of all of them.
const (
	maxRelevant   = 4096
	maxRemembered = 1 << 20
)

// identity is what the names in rules are matched with.
type identity struct{ tool, plugin, door, tenant, user, token, groups string }

// Open reads the policy in the file at path. The error names each place in the file that is wrong.
func Open(path string) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", path, err)
	}
	return p, nil
}

// Decide decides about a call.
func (p *Policy) Decide(c *Call) Decision {
	facts := p.newFacts(c)
	for _, rule := range p.candidates(c, facts.groups) {
		if rule.decides(facts) {
			return rule.decision()
		}
	}
	return p.fallback(c)
}

// fallback is the decision where no rule matches.
func (p *Policy) fallback(c *Call) Decision {
	if c.Door == DoorSlack && destructive(c.Annotations) {
		return Decision{Action: Deny, Rule: RuleChat, Reason: manifest.Text{
			"en": "tools that destroy things are not for chats unless a rule says otherwise",
			"ja": "破壊的な操作を行うツールは、ルールで許可しない限りチャットからは使えません",
		}}
	}
	return Decision{Action: p.defaults, Rule: RuleDefault}
}

// Visible reports whether the caller may ever call the tool, or ask to, whatever the arguments: only then is it listed.
func (p *Policy) Visible(c *Call) bool { return p.may(c, func(a Action) bool { return a != Deny }) }

// MayAsk reports whether a call of the tool by the caller may be asked about, whatever the arguments.
func (p *Policy) MayAsk(c *Call) bool { return p.may(c, func(a Action) bool { return a == Ask }) }

// may reports whether one of the decisions about calls of the tool can be wanted.
func (p *Policy) may(c *Call, wanted func(Action) bool) bool {
	unknown := *c
	unknown.Arguments = nil
	facts := p.newFacts(&unknown)
	rules, last := p.candidates(c, facts.groups), wanted(p.fallback(c).Action)
	if !last && !slices.ContainsFunc(rules, func(r *Rule) bool { return wanted(r.Action) }) {
		return false // whatever the conditions are
	}
	for _, rule := range rules {
		may, always := rule.prospect(facts)
		switch {
		case may && wanted(rule.Action):
			return true
		case always:
			return false
		}
	}
	return last
}

// Prospect is a decision about calls of a tool that depends on their arguments.
type Prospect struct {
	Decision
	// When is the rule's condition on the arguments; empty if they do not matter. Line is where the rule is in its file.
	When string
	Line int
}

// Prospects lists what can become of calls of the tool by the caller, whatever the arguments, in the order in which the rules are looked
// at. The last one is what becomes of those that none of the conditions before it fits.
func (p *Policy) Prospects(c *Call) []Prospect {
	unknown := *c
	unknown.Arguments = nil
	facts := p.newFacts(&unknown)
	var list []Prospect
	for _, rule := range p.candidates(c, facts.groups) {
		may, always := rule.prospect(facts)
		if always {
			return append(list, Prospect{Decision: rule.decision(), Line: rule.Line})
		}
		if may {
			list = append(list, Prospect{rule.decision(), rule.When, rule.Line})
		}
	}
	return append(list, Prospect{Decision: p.fallback(c)})
}

// prospect reports whether the rule may decide about a call that it concerns, and whether it does so always, where the arguments are not known.
func (r *Rule) prospect(f *facts) (may, always bool) {
	met, err := r.met(f)
	if err != nil && r.onArguments {
		return true, false
	}
	decides := met || err != nil && r.Action != Allow
	return decides, decides
}

// candidates are the rules whose names match, in order. They are remembered, because the same callers call the same tools.
func (p *Policy) candidates(c *Call, groups []string) []*Rule {
	key := identity{c.Tool, c.Plugin, c.Door, c.Tenant, c.User, c.Token, listed(c.Groups)}
	p.mu.Lock()
	defer p.mu.Unlock()
	rules, ok := p.relevant[key]
	if ok {
		return rules
	}
	full := c.Plugin + "/" + c.Tool
	for _, i := range p.index.find(c, full, groups) {
		if rule := p.rules[i]; rule.concerns(c, full, groups) {
			rules = append(rules, rule)
		}
	}
	if len(p.relevant) >= maxRelevant || p.remembered >= maxRemembered {
		clear(p.relevant)
		p.remembered = 0
	}
	p.relevant[key] = rules
	p.remembered += len(rules)
	return rules
}

// listed makes one text of names, another for any other names.
func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", names)
}

// GroupsOf lists the groups of the call's user: those that the door knows, then those of the policy.
func (p *Policy) GroupsOf(c *Call) []string {
	if c.User == "" {
		return c.Groups
	}
	return append(append([]string(nil), c.Groups...), p.groups[c.User]...)
}

// MayApprove reports whether user may agree to a call that decision asks about, which asker made. The groups are those that the door knows of.
func (p *Policy) MayApprove(d Decision, asker, user string, groups []string) bool {
	if d.Approvers.IsZero() {
		return user == asker
	}
	return d.Approvers.Has(user, p.GroupsOf(&Call{User: user, Groups: groups}))
}

// destructive is MCP's hint with its default: what does not say otherwise is.
func destructive(a manifest.Annotations) bool {
	return !hint(a.ReadOnlyHint, false) && hint(a.DestructiveHint, true)
}

func hint(h *bool, otherwise bool) bool {
	if h == nil {
		return otherwise
	}
	return *h
}
