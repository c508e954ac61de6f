package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/callclock"
)

// Elicitation: questions that a backend asks during a call. They are validated, asked of the caller and nobody else,
// and the answer is validated before the backend gets it.

// defaultElicitTimeout bounds the total wait for answers of a call if Approvals has no Timeout.
const defaultElicitTimeout = 5 * time.Minute

// Elicited is the outcome of a question that a backend asked during a call.
type Elicited struct {
	// Mode is elicitation.ModeForm or ModeURL, empty if it was neither.
	Mode string
	// Outcome is the action of the answer, or why there is none.
	Outcome string
	// Waited is the wait for the answer.
	Waited time.Duration
}

// Outcomes of questions, besides the actions of a person: accept, decline, cancel.
const (
	elicitedRefused     = "refused"   // it breaks a rule and was not asked
	elicitedUnreachable = "nobody"    // the caller could not be asked
	elicitedExpired     = "expired"   // no answer in time
	elicitedWithdrawn   = "withdrawn" // the call ended first
	elicitedInvalid     = "invalid"   // the answer was invalid or contained a secret
)

// errSecretAnswer means that an answer was rejected because of the rules for secrets.
var errSecretAnswer = errors.New("the answer contains what looks like a secret and was not forwarded")

// elicitor asks the questions of one call.
type elicitor struct {
	ctx      context.Context // of the call, whose time stands still while a question is asked
	pipeline *Pipeline
	served   *served

	// asking is held while a question is asked. It guards timeLeft, which is the remaining time for answers, and the record of
	// served.
	asking   sync.Mutex
	begun    bool
	timeLeft time.Duration
}

// initialize is deferred to the first question: most calls have none.
func (e *elicitor) initialize() {
	e.begun, e.timeLeft = true, defaultElicitTimeout
	if approvals, ok := e.pipeline.options.Approvals.(interface{ Timeout() time.Duration }); ok {
		e.timeLeft = approvals.Timeout()
	}
}

// elicit asks a question; questions are asked one at a time. The error says in words for the caller why no person
// answered.
func (e *elicitor) elicit(ctx context.Context, r *elicitation.Request) (elicitation.Answer, error) {
	if e.served.record.questions.begin() != nil {
		rule := fmt.Sprintf("it has asked more than %d questions in one call", maxQuestions)
		return elicitation.Answer{Action: elicitation.Cancel}, &elicitation.RuleError{Rule: rule}
	}
	e.asking.Lock()
	defer e.asking.Unlock()
	if !e.begun {
		e.initialize()
	}
	_, span := trace.Start(ctx, "elicitation", trace.Internal)
	defer span.End()
	began := time.Now()
	q, err := e.served.record.questions.take(ctx, identity.Key(e.served.subject.source.Name, r.Mode, r.Message, string(r.Schema), r.URL))
	if err != nil {
		return elicitation.Answer{Action: elicitation.Cancel}, err
	}
	defer q.release()
	if q.declined != nil {
		return *q.declined, nil
	}
	mode, answer, outcome, err := e.askChecked(ctx, r)
	if outcome == elicitation.Decline || outcome == elicitation.Cancel {
		q.declined = &answer
	}
	e.served.record.Elicitations = append(e.served.record.Elicitations, Elicited{mode, outcome, time.Since(began)})
	span.Text(trace.Outcome, outcome)
	return answer, err
}

// askChecked validates the question, asks it and validates the answer.
func (e *elicitor) askChecked(
	ctx context.Context, r *elicitation.Request,
) (mode string, _ elicitation.Answer, outcome string, _ error) {
	none := elicitation.Answer{Action: elicitation.Cancel}
	q, err := elicitation.Parse(r)
	if err != nil {
		return "", none, elicitedRefused, err
	}
	if e.served.Prompter.Fill == nil {
		return q.Mode(), elicitation.Answer{Action: elicitation.Decline}, elicitedUnreachable, elicitation.ErrNobody
	}
	q.Server, q.Tool = e.served.subject.source.Name, e.served.subject.name
	if s := e.pipeline.scanner(); s != nil {
		q.Message, _ = s.Text(secretscan.Results, q.Message)
	}
	defer callclock.Pause(e.ctx)()
	asking, stop := context.WithTimeout(ctx, e.timeLeft)
	defer stop()
	began := time.Now()
	answer, err := e.served.Prompter.Fill(asking, q)
	e.timeLeft -= time.Since(began)
	switch {
	case ctx.Err() != nil:
		return q.Mode(), none, elicitedWithdrawn, ctx.Err()
	case asking.Err() != nil:
		return q.Mode(), none, elicitedExpired, errors.New("nobody answered in time")
	case errors.Is(err, elicitation.ErrMisfit):
		return q.Mode(), none, elicitedInvalid, err
	case err != nil:
		return q.Mode(), elicitation.Answer{Action: elicitation.Decline}, elicitedUnreachable, elicitation.ErrNobody
	}
	return e.checkAnswer(q, answer)
}

// checkAnswer validates and scans an answer.
func (e *elicitor) checkAnswer(
	q *elicitation.Question, answer elicitation.Answer,
) (mode string, _ elicitation.Answer, outcome string, err error) {
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
		content, err = q.Form.Check(content) // masking may have made it invalid
	}
	if err != nil {
		return q.Mode(), none, elicitedInvalid, errSecretAnswer
	}
	return q.Mode(), elicitation.Answer{Action: elicitation.Accept, Content: content}, elicitation.Accept, nil
}

// scan applies the rules for secrets in arguments to an answer.
func (e *elicitor) scan(content map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	masked, err := e.pipeline.maskArguments(e.served.subject.name, encoded, e.served.record)
	if err != nil {
		return nil, err
	}
	scanned := map[string]any{}
	err = json.Unmarshal(masked, &scanned)
	return scanned, err
}

var _ interface{ Timeout() time.Duration } = (*approval.Queue)(nil)
