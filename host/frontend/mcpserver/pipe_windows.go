package mcpserver

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isBrokenPipe reports whether err comes from a write to a pipe that nobody reads any more.
func isBrokenPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
