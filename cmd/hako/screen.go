package main

import (
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/hako-run/hako/internal/visible"
)

// screen is standard output or standard error as people read it. What clients, plugins, models and others wrote can
// hide nothing there, and does nothing to a terminal: hidden characters are escaped (visible.Escape).
type screen struct {
	*visible.Writer
	terminal bool
}

// newScreen returns the screen on a stream. A screen is one already.
func newScreen(stream io.Writer) *screen {
	if s, ok := stream.(*screen); ok {
		return s
	}
	return &screen{visible.NewWriter(stream), isTerminal(stream)}
}

// isTerminal reports whether a person is probably at the other end of the stream.
func isTerminal(stream any) bool {
	if s, ok := stream.(*screen); ok {
		return s.terminal
	}
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// data is where results and records go that another program may read. At a terminal it is the screen; elsewhere they
// arrive byte for byte.
func (a *app) data() io.Writer {
	if a.pipe == nil || isTerminal(a.stdout) {
		return a.stdout
	}
	return a.pipe
}

// block is an argument of printf that may have several lines.
type block string

// printf prints for people. Each argument that is text stays on its line, whatever it holds, but for a block and for
// errors, which may have several lines of hako's own.
func printf(out io.Writer, format string, args ...any) error {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = oneLine(arg)
	}
	_, err := fmt.Fprintf(out, format, shown...)
	return err
}

func oneLine(arg any) any {
	switch v := arg.(type) {
	case block:
		return string(v)
	case error:
		return v
	case string:
		return visible.Line(v)
	case fmt.Stringer:
		return visible.Line(v.String())
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
		return visible.Line(v.String())
	}
	return arg
}
