package approval

import (
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
