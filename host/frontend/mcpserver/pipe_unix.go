//go:build !windows

package mcpserver

import (
	"errors"
	"syscall"
)

// isBrokenPipe reports whether err comes from a write to a pipe that nobody reads any more.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
