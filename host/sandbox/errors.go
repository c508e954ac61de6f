package sandbox

import (
	"fmt"
	"strings"
)

// GuestError means that a guest broke its contract: it trapped, exited, or sent an invalid response. Its text reveals
// nothing of the host and is safe to show; Err has the details.
type GuestError struct {
	Plugin string
	Reason string
	Err    error
}

func (e *GuestError) Error() string { return fmt.Sprintf("plugin %s %s", e.Plugin, e.Reason) }
func (e *GuestError) Unwrap() error { return e.Err }

// firstLine drops the stack trace that the runtime appends to a trap.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}
