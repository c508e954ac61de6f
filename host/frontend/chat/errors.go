package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/frontend/llm"
)

// Errors of conversations.
var (
	// ErrUnknown means that there is no such conversation.
	ErrUnknown = errors.New("there is no such conversation")
	// ErrNotYours means that another person began the conversation.
	ErrNotYours = errors.New("the conversation belongs to another user")

	errLine  = errors.New("too many messages of the conversation are queued")
	errLong  = errors.New("the message is too long")
	errEmpty = errors.New("the message is empty")
)

// Reasons of an Error besides the kinds of llm.Error.
const (
	ReasonBudget  = "budget"  // a budget is used up
	ReasonBusy    = "busy"    // too many messages of the conversation are queued
	ReasonInvalid = "message" // the message is empty or too long
	ReasonDenied  = "denied"  // the conversation belongs to another user
	ReasonHost    = "internal"
)

// Error explains why a turn has no answer.
type Error struct {
	// Reason is one of the Reason constants or an llm.Kind.
	Reason string
	// Text describes the error and its remedy, in the person's language.
	Text string
	// Err is the cause, for logs and errors.Is.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("chat: %v", e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// explain converts err to an *Error. The context error of a cancelled turn is returned unchanged.
func explain(err error, w *words) error {
	var told *Error
	var model *llm.Error
	switch {
	case err == nil, errors.As(err, &told):
		return err
	case errors.As(err, &model): // checked first: its cause may be a timeout of the provider
		return &Error{string(model.Kind), w.model(model), err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errLine):
		return &Error{ReasonBusy, w.line, err}
	case errors.Is(err, errLong):
		return &Error{ReasonInvalid, w.long, err}
	case errors.Is(err, errEmpty):
		return &Error{ReasonInvalid, w.empty, err}
	case errors.Is(err, ErrNotYours):
		return &Error{ReasonDenied, w.notYours, err}
	}
	return &Error{ReasonHost, w.internal, err}
}
