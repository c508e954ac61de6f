package main

import (
	"io"

	"github.com/hako-run/hako/internal/terminal"
)

// block is an argument of printf that may have several lines.
type block = terminal.Block

// printf prints for people; see terminal.Printf.
func printf(out io.Writer, format string, args ...any) error {
	return terminal.Printf(out, format, args...)
}

// data returns the stream for results and records that another program may read. At a terminal it is the screen;
// elsewhere they are written byte for byte.
func (a *app) data() io.Writer {
	if a.pipe == nil || terminal.IsTerminal(a.stdout) {
		return a.stdout
	}
	return a.pipe
}
