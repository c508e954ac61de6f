package sandbox

import (
	"context"
	"fmt"
	"strings"
)

// Names of the limits in a LimitError.
const (
	LimitTime   = "time"
	LimitCPU    = "cpu"
	LimitMemory = "memory"
	LimitInput  = "input"
	LimitOutput = "output"
	LimitQueue  = "queue"
	LimitRate   = "rate"
	// LimitBudget is the host's memory budget for all plugins.
	LimitBudget = "memoryBudget"
)

// LimitError says which limit ended a call. Its text is safe to show to a model. An error for LimitTime matches
// context.DeadlineExceeded.
type LimitError struct {
	// Plugin is the plugin's name, Limit one of the names above, Value the limit in words ("30s", "64 MiB").
	Plugin, Limit, Value string
	// Remedy tells the reader what to do.
	Remedy string
}

func (e *LimitError) Error() string {
	if e.Limit == LimitBudget {
		return fmt.Sprintf("plugin %s finds no free memory: "+
			"all plugins together use the %s that the host gives them: %s",
			e.Plugin, e.Value, e.Remedy)
	}
	return fmt.Sprintf("plugin %s passed its %s limit of %s: %s", e.Plugin, e.Limit, e.Value, e.Remedy)
}

// Is makes the time limit a deadline for errors.Is.
func (e *LimitError) Is(target error) bool {
	return e.Limit == LimitTime && target == context.DeadlineExceeded
}

// GuestError says that a guest broke its contract: it trapped, exited, or sent an invalid response. Its text reveals
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

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
