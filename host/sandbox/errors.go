package sandbox

import (
	"strings"
)

// firstLine drops the stack trace that the runtime appends to a trap.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}
