package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed is returned by calls on a closed plugin.
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

// unusable returns the error for a plugin whose code cannot be loaded, which is the guest's fault. It is nil if err is.
func (p *Plugin) unusable(err error) error {
	if err == nil {
		return nil
	}
	return &GuestError{p.spec.Name, "cannot be used: " + firstLine(err), err}
}

// named adds the name of the plugin to an error, unless that has it.
func (p *Plugin) named(err error) error {
	var guest *GuestError
	if errors.As(err, &guest) {
		return err
	}
	return fmt.Errorf("plugin %s: %w", p.spec.Name, err)
}

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

// firstLine drops the stack trace that the runtime appends to a trap.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}
