// Package limit has what plugins and upstream servers share of the limits of calls. An Error says which limit ended a
// call; a Gate bounds concurrent and waiting calls.
package limit

import (
	"context"
	"fmt"
)

// Names of the limits in an Error.
const (
	Time   = "time"
	CPU    = "cpu"
	Memory = "memory"
	Input  = "input"
	Output = "output"
	Queue  = "queue"
	Rate   = "rate"
	// Budget is the host's memory budget for all plugins.
	Budget = "memoryBudget"
)

// Error is the error of a call that a limit ended. Its text is safe to show to a model. An error for Time matches
// context.DeadlineExceeded.
type Error struct {
	// Plugin is the plugin's name, Limit one of the names above, Value the limit in words ("30s", "64 MiB").
	Plugin, Limit, Value string
	// Remedy is a sentence with what to do.
	Remedy string
}

func (e *Error) Error() string {
	if e.Limit == Budget {
		return fmt.Sprintf("plugin %s finds no free memory: "+
			"all plugins together use the %s that the host gives them: %s",
			e.Plugin, e.Value, e.Remedy)
	}
	return fmt.Sprintf("plugin %s passed its %s limit of %s: %s", e.Plugin, e.Limit, e.Value, e.Remedy)
}

// Is makes the time limit a deadline for errors.Is.
func (e *Error) Is(target error) bool { return e.Limit == Time && target == context.DeadlineExceeded }

// Bytes returns n in words, in the largest unit up to MiB that is exact.
func Bytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
