//go:build !windows

package mcpserver

import (
	"errors"
	"syscall"
)

// isBrokenPipe tells whether err is of a write to a pipe that nobody reads any more.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
