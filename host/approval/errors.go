package approval

import (
	"context"
	"errors"
)

// Errors of Ask and Answer.
var (
	// ErrUnreachable means that there is nobody to ask.
	ErrUnreachable = errors.New("nobody who could agree to it can be reached")
	// ErrExpired means that nobody answered in time.
	ErrExpired = errors.New("nobody agreed to it in time")
	// ErrUnknown means that there is no such question, or that it was answered, has expired or was withdrawn.
	ErrUnknown = errors.New("there is no such question, or it has been answered, has expired or was withdrawn")
	// ErrMayNot means that this person may not answer the question.
	ErrMayNot = errors.New("you may not answer this question")
	// ErrChanged means that the call would replace something else than the question showed.
	ErrChanged = errors.New(
		"what it would replace has changed since approval was requested: nothing was replaced; call it " +
			"again to request approval for the current content")
	// ErrOther means that the answer belongs to a question about another call.
	ErrOther = errors.New("this approval is for another call")
)

// RefusedError means that a person refused the call.
type RefusedError struct{ By string }

func (e *RefusedError) Error() string {
	if e.By == "" {
		return "it was refused"
	}
	return "it was refused by " + e.By
}

// PendingError means that the caller has to bring the answer with a second call.
type PendingError struct{ Question *Question }

func (e *PendingError) Error() string { return "it is pending approval" }

// Outcomes of a question, for records and metrics.
const (
	Yes         = "yes"
	Remembered  = "remembered" // an earlier yes is valid
	No          = "no"
	Pending     = "pending" // the answer comes with a second call
	Expired     = "expired"
	Unreachable = "unreachable"
	Withdrawn   = "withdrawn" // the call was cancelled
	Invalid     = "invalid"   // the answer was replayed, altered, or not by an approver
	Failed      = "failed"    // the store failed
)

// Outcomes lists all outcomes.
var Outcomes = []string{Yes, Remembered, No, Pending, Expired, Unreachable, Withdrawn, Invalid, Failed}

// OutcomeOf returns the outcome of a question for which Ask returned err.
func OutcomeOf(q *Question, err error) string {
	var refused *RefusedError
	var pending *PendingError
	switch {
	case err == nil && q.ID == "":
		return Remembered
	case err == nil:
		return Yes
	case errors.As(err, &refused):
		return No
	case errors.As(err, &pending):
		return Pending
	case errors.Is(err, ErrExpired):
		return Expired
	case errors.Is(err, ErrUnreachable):
		return Unreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Withdrawn
	case errors.Is(err, ErrMayNot), errors.Is(err, ErrOther), errors.Is(err, ErrUnknown),
		errors.Is(err, ErrChanged):
		return Invalid
	}
	return Failed
}
