package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/secretscan"
	"github.com/hako-run/hako/host/trace"
)

// This file is the room through which the questions go that a server asks in the middle of a call, whatever the door: what it asks is
// checked, put to whoever made the call and to nobody else, and the answer is checked before it leaves.

// maxQuestions is how many questions one call may ask.
const maxQuestions = 10

// defaultPatience is how long the questions of a call wait where the desk for approvals does not say.
const defaultPatience = 5 * time.Minute

// Elicited is what became of a question that a server asked during a call.
type Elicited struct {
	// Mode is elicitation.ModeForm or ModeURL, empty if it was neither.
	Mode string
	// Outcome is one of ElicitedOutcomes.
	Outcome string
	// Waited is how long it waited for its answer.
	Waited time.Duration
}

// What becomes of questions, besides the actions of a person: accept, decline, cancel.
const (
	elicitedRefused   = "refused"   // it breaks a rule, and was put to nobody
	elicitedNobody    = "nobody"    // nobody could be asked
	elicitedExpired   = "expired"   // nobody answered in time
	elicitedWithdrawn = "withdrawn" // the call ended first
	elicitedInvalid   = "invalid"   // the answer did not fit, or held a secret, and was not passed on
)

// ElicitedOutcomes lists all outcomes of questions.
var ElicitedOutcomes = []string{
	elicitation.Accept, elicitation.Decline, elicitation.Cancel,
	elicitedRefused, elicitedNobody, elicitedExpired, elicitedWithdrawn, elicitedInvalid,
}

// errSecretAnswer says that the rules for secrets stand against an answer.
var errSecretAnswer = errors.New("the answer holds what looks like a secret, and was not passed on")

// elicitor puts the questions of one call.
type elicitor struct {
	pipeline *Pipeline
	call     *Call
	subject  *subject
	record   *Record

	// one is held by the question that is put. It guards left, which is how long questions may still wait, record and refused.
	one  sync.Mutex
	left time.Duration

	// refused are the questions that were declined or left: one that comes again is not put again.
	refused map[string]elicitation.Answer

	mu    sync.Mutex // guards asked
	asked int
}

func (p *Pipeline) elicitor(call *Call, s *subject, record *Record) *elicitor {
	return &elicitor{pipeline: p, call: call, subject: s, record: record}
}

// begin is what most calls never come to.
func (e *elicitor) begin() {
	e.refused, e.left = map[string]elicitation.Answer{}, defaultPatience
	if desk, ok := e.pipeline.options.Approvals.(interface{ Timeout() time.Duration }); ok {
		e.left = desk.Timeout()
	}
}

// elicit puts a question, one at a time. Its error says in words for the caller why there is no answer of a person.
func (e *elicitor) elicit(ctx context.Context, r *elicitation.Request) (elicitation.Answer, error) {
	e.mu.Lock()
	e.asked++
	over := e.asked > maxQuestions
	e.mu.Unlock()
	if over {
		return elicitation.Answer{Action: elicitation.Cancel}, &elicitation.RuleError{Rule: fmt.Sprintf("it has asked more than %d questions in one call", maxQuestions)}
	}
	e.one.Lock()
	defer e.one.Unlock()
	if e.refused == nil {
		e.begin()
	}
	_, span := trace.Start(ctx, "elicitation", trace.Internal)
	defer span.End()
	began := time.Now()
	key := identity.Key(r.Mode, r.Message, string(r.Schema), r.URL)
	if answer, ok := e.refused[key]; ok {
		return answer, nil
	}
	mode, answer, outcome, err := e.put(ctx, r)
	if outcome == elicitation.Decline || outcome == elicitation.Cancel {
		e.refused[key] = answer
	}
	e.record.Elicited = append(e.record.Elicited, Elicited{mode, outcome, time.Since(began)})
	span.Text(trace.Outcome, outcome)
	return answer, err
}

// put checks the question, asks and checks the answer.
func (e *elicitor) put(ctx context.Context, r *elicitation.Request) (mode string, _ elicitation.Answer, outcome string, _ error) {
	none := elicitation.Answer{Action: elicitation.Cancel}
	q, err := elicitation.Parse(r)
	if err != nil {
		return "", none, elicitedRefused, err
	}
	if e.call.Way.Fill == nil {
		return q.Mode(), elicitation.Answer{Action: elicitation.Decline}, elicitedNobody, elicitation.ErrNobody
	}
	q.Server, q.Tool = e.subject.source.Name, e.subject.name
	if s := e.pipeline.scanner(); s != nil {
		q.Message, _ = s.Text(secretscan.Results, q.Message)
	}
	asking, stop := context.WithTimeout(ctx, e.left)
	defer stop()
	began := time.Now()
	answer, err := e.call.Way.Fill(asking, q)
	e.left -= time.Since(began)
	switch {
	case ctx.Err() != nil:
		return q.Mode(), none, elicitedWithdrawn, ctx.Err()
	case asking.Err() != nil:
		return q.Mode(), none, elicitedExpired, errors.New("nobody answered in time")
	case errors.Is(err, elicitation.ErrMisfit):
		return q.Mode(), none, elicitedInvalid, err
	case err != nil:
		return q.Mode(), elicitation.Answer{Action: elicitation.Decline}, elicitedNobody, elicitation.ErrNobody
	}
	return e.passOn(q, answer)
}

// passOn returns what may leave of an answer.
func (e *elicitor) passOn(q *elicitation.Question, answer elicitation.Answer) (mode string, _ elicitation.Answer, outcome string, err error) {
	none := elicitation.Answer{Action: elicitation.Cancel}
	switch {
	case answer.Action == elicitation.Decline:
		return q.Mode(), elicitation.Answer{Action: elicitation.Decline}, elicitation.Decline, nil
	case answer.Action != elicitation.Accept:
		return q.Mode(), none, elicitation.Cancel, nil
	case q.Form == nil:
		return q.Mode(), elicitation.Answer{Action: elicitation.Accept}, elicitation.Accept, nil
	}
	content, err := q.Form.Check(answer.Content)
	if err != nil {
		return q.Mode(), none, elicitedInvalid, fmt.Errorf("%w: %w", elicitation.ErrMisfit, err)
	}
	if content, err = e.scan(content); err == nil {
		content, err = q.Form.Check(content) // a secret that was masked may not fit any more
	}
	if err != nil {
		return q.Mode(), none, elicitedInvalid, errSecretAnswer
	}
	return q.Mode(), elicitation.Answer{Action: elicitation.Accept, Content: content}, elicitation.Accept, nil
}

// scan looks for secrets in what a person wrote: it goes the way of arguments.
func (e *elicitor) scan(content map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	masked, err := e.pipeline.scanArguments(e.subject.name, encoded, e.record)
	if err != nil {
		return nil, err
	}
	scanned := map[string]any{}
	return scanned, json.Unmarshal(masked, &scanned)
}

var _ interface{ Timeout() time.Duration } = (*approval.Desk)(nil)
