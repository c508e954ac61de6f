// Package policytry tries a policy on the calls of the audit log: which of them it would decide otherwise.
//
// Run reads the log and returns a Result. The log has no arguments unless the operator has them recorded, so some calls
// cannot be decided again; the Result counts them with the reasons. Nothing is called and no policy is changed.
package policytry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

const (
	// maxCalls bounds the calls of one trial, and maxTime its time. A trial of that many takes about a second.
	maxCalls = 100_000
	maxTime  = 20 * time.Second
	// maxKinds bounds the distinct kinds of changes, and maxListed those that are listed.
	maxKinds  = 10_000
	maxListed = 100
)

// Reasons why a call cannot be decided again.
const (
	// Arguments: a condition needs arguments that were not recorded.
	Arguments = "arguments"
	// Employee: a condition needs the caller's employee, which depends on an address that is not recorded.
	Employee = "employee"
	// Tool: a condition needs the hints of a tool that is not in the catalog now.
	Tool = "tool"
	// Older: an earlier version wrote the record, without the caller's token, groups and scopes.
	Older = "older"
)

// Log is the audit log. audit.Reader implements it.
type Log interface {
	Read(ctx context.Context, q *audit.Query) iter.Seq2[*audit.Entry, error]
}

// Hints returns the annotations of a tool on offer.
type Hints func(tool string) (a manifest.Annotations, ok bool)

// Result is the effect of a policy on recorded calls.
type Result struct {
	Since time.Time `json:"since"`
	// Until is the time of the last call that was looked at, if Cut says that the log has more: too many for one trial.
	Until time.Time `json:"until,omitzero"`
	Cut   bool      `json:"cut"`
	// Calls are those that a policy has decided about. It is the sum of Same, Changed and Undecidable.
	Calls       int `json:"calls"`
	Same        int `json:"same"`
	Changed     int `json:"changed"`
	Undecidable int `json:"undecidable"`
	// OtherRule counts those of Same that another rule decides.
	OtherRule int `json:"otherRule"`
	// Reasons counts Undecidable by the reason.
	Reasons map[string]int `json:"reasons"`
	// Changes are the changed calls, those with most calls first. Omitted is the number of calls that are not in it.
	Changes []*Change `json:"changes"`
	Omitted int       `json:"omitted"`
}

// Change is a number of calls of one caller to one tool that change in the same way.
type Change struct {
	Tool   string  `json:"tool"`
	Plugin string  `json:"plugin"`
	Caller Caller  `json:"caller"`
	From   Verdict `json:"from"`
	To     Verdict `json:"to"`
	Calls  int     `json:"calls"`
	// Seq and Time are the number and the time of the last of these calls in the log.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
}

// Caller made the calls.
type Caller struct {
	Frontend string `json:"frontend"`
	Tenant   string `json:"tenant,omitempty"`
	User     string `json:"user,omitempty"`
	Token    string `json:"token,omitempty"`
}

// Verdict is a decision, with the line of its rule if that is known.
type Verdict struct {
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule"`
	Line   int           `json:"line,omitempty"`
}

// kind distinguishes changes.
type kind struct {
	tool, plugin string
	caller       Caller
	from, to     Verdict
}

// trial gathers a Result.
type trial struct {
	next, now *policy.Policy
	hints     Hints
	changes   map[kind]*Change
	result    Result
}

// Run decides about the calls in the log since a time again, under the policy next. now is the policy in force. Run
// fails with the log's error. If there are too many calls, or if it takes too long, the Result says how far it got.
func Run(ctx context.Context, log Log, since time.Time, next, now *policy.Policy, hints Hints) (*Result, error) {
	t := &trial{next: next, now: now, hints: hints, changes: map[kind]*Change{}, result: Result{Since: since.UTC(),
		Reasons: map[string]int{}}}
	inTime, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	for entry, err := range log.Read(inTime, &audit.Query{Since: since}) {
		if inTime.Err() != nil || t.result.Calls == maxCalls {
			t.result.Cut = true
			break
		}
		if err != nil {
			return nil, err
		}
		if entry.Decision != nil {
			t.add(entry)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if errors.Is(inTime.Err(), context.DeadlineExceeded) {
		t.result.Cut = true
	}
	return t.finish(), nil
}

func (t *trial) add(e *audit.Entry) {
	r := &t.result
	r.Calls++
	r.Until = e.Time
	if e.Decision.Policy == "" {
		r.undecidable(Older)
		return
	}
	past := t.past(e)
	prospects, unknown := t.next.Redecide(past)
	to := prospects[len(prospects)-1]
	if slices.ContainsFunc(prospects, func(p policy.Prospect) bool { return p.Action != to.Action }) {
		r.undecidable(reasonFor(unknown))
		return
	}
	switch {
	case string(to.Action) != e.Decision.Action:
		r.Changed++
		t.change(e, past, &to)
	case len(prospects) == 1 && to.Rule != e.Decision.Rule:
		r.OtherRule++
		r.Same++
	default:
		r.Same++
	}
}

func (r *Result) undecidable(reason string) {
	r.Undecidable++
	r.Reasons[reason]++
}

// reasonFor returns the reason for variables of conditions that are unknown.
func reasonFor(unknown []string) string {
	switch {
	case slices.Contains(unknown, "arguments"):
		return Arguments
	case slices.Contains(unknown, "caller"):
		return Employee
	}
	return Tool
}

// reads are the hints of requests other than tools/call.
var reads = func() (a manifest.Annotations) {
	yes, no := true, false
	a.ReadOnlyHint, a.OpenWorldHint = &yes, &no
	return a
}()

// past returns the call that a record describes.
func (t *trial) past(e *audit.Entry) *policy.PastCall {
	s := e.Subject
	caller := policy.Caller{User: s.User, Frontend: s.Frontend, Tenant: s.Tenant, Token: s.Token, Groups: s.Groups,
		Scopes: s.Scopes, Via: e.Via, Toolset: s.Toolset}
	name, hints, known := string(e.Type), reads, true
	if e.Type == audit.TypeCall {
		name = e.Target.Name
		hints, known = t.hints(name)
	}
	past := &policy.PastCall{Call: *caller.Call(name, e.Target.Plugin, hints), NoHints: !known, Rule: e.Decision.Rule}
	if e.Decision.Policy == t.now.ID() {
		past.By = t.now
	}
	// Masked arguments are not those that the policy saw.
	if !slices.ContainsFunc(e.Findings, func(f audit.Finding) bool { return f.Place == "arguments" }) {
		past.Arguments = recorded(e.Arguments)
	}
	return past
}

// recorded returns the recorded fields of arguments; nil for a digest.
func recorded(arguments json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil {
		return nil
	}
	delete(fields, "digest")
	data, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return data
}

func (t *trial) change(e *audit.Entry, past *policy.PastCall, to *policy.Prospect) {
	s := e.Subject
	k := kind{past.Tool, past.Plugin, Caller{s.Frontend, s.Tenant, s.User, s.Token},
		Verdict{Action: policy.Action(e.Decision.Action), Rule: e.Decision.Rule}, Verdict{to.Action, to.Rule, to.Line}}
	c := t.changes[k]
	if c == nil {
		if len(t.changes) == maxKinds {
			t.result.Omitted++
			return
		}
		c = &Change{Tool: k.tool, Plugin: k.plugin, Caller: k.caller, From: k.from, To: k.to}
		t.changes[k] = c
	}
	c.Calls++
	c.Seq, c.Time = e.Seq, e.Time
}

func (t *trial) finish() *Result {
	r := &t.result
	r.Changes = slices.SortedFunc(maps.Values(t.changes), func(a, b *Change) int {
		return cmp.Or(b.Calls-a.Calls, cmp.Compare(a.Tool, b.Tool), cmp.Compare(b.Seq, a.Seq))
	})
	for len(r.Changes) > maxListed {
		last := len(r.Changes) - 1
		r.Omitted += r.Changes[last].Calls
		r.Changes = r.Changes[:last]
	}
	r.Changes = append([]*Change{}, r.Changes...)
	if !r.Cut {
		r.Until = time.Time{}
	}
	return r
}

// Safe reports whether every call is decided as it was.
func (r *Result) Safe() bool { return r.Changed+r.Undecidable == 0 && !r.Cut }

func (c Caller) String() string {
	text := cmp.Or(c.User, c.Token, "nobody") + " at " + c.Frontend
	if c.Tenant != "" {
		text += " for " + c.Tenant
	}
	return text
}

func (v Verdict) String() string { return fmt.Sprintf("%s by %q", v.Action, v.Rule) }
