package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/secretscan"
)

// Record describes a call that has ended. Observers may keep it: it shares no memory with the request, the response or
// the context of the call, and each of its texts has at most 4 KiB.
type Record struct {
	// ID is unique. The audit log has it too.
	ID     string
	Caller Caller
	// Parent is the ID of the call whose tool made this one, Via the plugin of that tool. Both are empty for calls of
	// frontends.
	Parent, Via string
	// Method is MCP's ("tools/call"). Name and Source are from the catalog, empty if it does not have the name.
	Method, Name, Source string
	Outcome              Outcome
	Started              time.Time
	Duration             time.Duration
	// Input and Output are the sizes of arguments and result, in bytes.
	Input, Output int
	// Steps is the number of steps that the guest computed, without those of tools that it called.
	Steps int64
	// Action and Rule are the policy's decision, empty if none was made. Question is the ID of the approval question,
	// Approver who answered it.
	Action policy.Action
	Rule   string
	// Policy identifies the policy that decided.
	Policy             string
	Question, Approver string
	// Answers are the outcomes of the call's approval questions.
	Answers []Answer
	// Elicitations are the outcomes of the questions that the backend asked during the call.
	Elicitations []Elicited
	// Quota is the name of the exhausted quota; empty if none was.
	Quota string
	// Digest is the plugin's. Findings are the secrets found, each rule once per place.
	Digest   string
	Findings []secretscan.Finding
	// TraceID is the host's trace of the call, or else the one that the caller named. It may be empty.
	TraceID string
	// Arguments are those that the operator wants recorded, with secrets masked. Summary describes the result.
	Arguments map[string]json.RawMessage
	Summary   *audit.OutputSummary
	// Error is the reason of the failure, for operators. It is empty for a failure that the tool reported, whose text
	// is the tool's result.
	Error string
}

// Active is the duration without the time in which people were asked.
func (r *Record) Active() time.Duration {
	active := r.Duration
	for _, answer := range r.Answers {
		active -= answer.Waited
	}
	for _, asked := range r.Elicitations {
		active -= asked.Waited
	}
	return max(active, 0) // questions of one call can wait at the same time
}

// Answer is the outcome of an approval question.
type Answer struct {
	// Outcome is one of approval.Outcomes.
	Outcome string
	// Waited is the wait for the answer. It is zero if nobody was asked or if the answer comes in a second call.
	Waited time.Duration
}

// Observer is notified of every call, also of refused ones. Its methods are called concurrently and must be quick.
type Observer interface {
	CallStarted(*Running)
	CallEnded(Record)
}

// openRecord is the Record of a call that has not ended, with what only the call itself uses. Its texts may be parts of
// the request and of the response.
type openRecord struct {
	Record
	running *Running // nil without an observer
	// whole are the arguments as the tool gets them, with those that a toolset fixes. They are nil for a call that was
	// refused before.
	whole json.RawMessage
	// questions are those of the call, shared with the calls that its tool makes.
	questions *questions
}

// detached returns a copy of the Record for observers, with the Caller that begin has copied. Each text is a copy of its own: observers use names as keys of
// maps, which live longer than the Record.
func (r *openRecord) detached() *Record {
	d := r.Record
	d.Answers, d.Elicitations = slices.Clone(d.Answers), slices.Clone(d.Elicitations)
	d.Findings = slices.Clone(d.Findings)
	texts := make([]*string, 0, 32)
	texts = append(texts, &d.ID, &d.Parent, &d.Via, &d.Method, &d.Name, &d.Source, &d.Rule, &d.Policy, &d.Question,
		&d.Approver, &d.Quota, &d.Digest, &d.TraceID, &d.Error, (*string)(&d.Outcome), (*string)(&d.Action))
	for i := range d.Answers {
		texts = append(texts, &d.Answers[i].Outcome)
	}
	for i := range d.Elicitations {
		texts = append(texts, &d.Elicitations[i].Mode, &d.Elicitations[i].Outcome)
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		texts = append(texts, &f.Rule, (*string)(&f.Place), (*string)(&f.Action))
	}
	if d.Summary != nil {
		summary := *d.Summary
		summary.Counts = make(map[string]int, len(summary.Counts))
		for kind, n := range d.Summary.Counts {
			summary.Counts[strings.Clone(kind)] = n
		}
		d.Summary = &summary
		texts = append(texts, &summary.Kind, &summary.Text)
	}
	detachTexts(texts)
	if d.Arguments != nil {
		arguments := make(map[string]json.RawMessage, len(d.Arguments))
		for name, value := range d.Arguments {
			arguments[strings.Clone(name)] = slices.Clone(value)
		}
		d.Arguments = arguments
	}
	return &d
}

// detached returns a copy of the caller for observers, as openRecord.detached does.
func (c *Caller) detached() Caller {
	d := *c
	d.Groups, d.Scopes = slices.Clone(c.Groups), slices.Clone(c.Scopes)
	texts := append(make([]*string, 0, 32), &d.Frontend, &d.Tenant, &d.User, &d.Session, &d.Token, &d.SessionSecret,
		&d.Email, &d.Channel, &d.Toolset, &d.Client, &d.ClientVersion, &d.Address, &d.RequestID, &d.TraceID,
		&d.HTTPRequestID, &d.Trace.Parent, &d.Trace.State, &d.Locale)
	for _, list := range [][]string{d.Groups, d.Scopes} {
		for i := range list {
			texts = append(texts, &list[i])
		}
	}
	detachTexts(texts)
	return d
}

// detachTexts replaces each text by a copy of at most its first maxRecorded bytes.
func detachTexts(texts []*string) {
	for _, text := range texts {
		if len(*text) > maxRecorded {
			*text = clipped(*text)
		} else {
			*text = strings.Clone(*text)
		}
	}
}
