package catalog

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of a call to the backend of a plugin that has been closed. The plugin was replaced or removed.
var ErrClosed = errors.New("the plugin has been removed")

// GuestError means that a guest broke its contract: it trapped, exited, or sent an invalid response. Its text reveals
// nothing of the host and is safe to show; Err has the details.
type GuestError struct {
	Plugin string
	Reason string
	Err    error
}

func (e *GuestError) Error() string { return fmt.Sprintf("plugin %s %s", e.Plugin, e.Reason) }
func (e *GuestError) Unwrap() error { return e.Err }

// StackError adds the place in a guest at which an error occurred. Its text is the text of Err, which is a *GuestError
// or a *limit.Error.
type StackError struct {
	Err error
	// Stack has the functions that the guest was in, the innermost first, each on a line. It is for authors and
	// operators.
	Stack string
}

func (e *StackError) Error() string { return e.Err.Error() }
func (e *StackError) Unwrap() error { return e.Err }

// Stack returns the stack of the *StackError in err, or "".
func Stack(err error) string {
	if where, ok := errors.AsType[*StackError](err); ok {
		return where.Stack
	}
	return ""
}
