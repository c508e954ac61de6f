package terminal

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/hako-run/hako/internal/visible"
)

// Screen is standard output or standard error as people read it. Hidden characters are escaped (visible.Escape), so
// text of clients, plugins, models and others neither hides anything nor controls the terminal.
type Screen struct {
	*visible.Writer
	// Terminal reports whether a person is probably at the other end.
	Terminal bool

	stream io.Writer
}

// NewScreen returns a Screen on a stream, or the stream itself if it is one.
func NewScreen(stream io.Writer) *Screen {
	if s, ok := stream.(*Screen); ok {
		return s
	}
	return &Screen{Writer: visible.NewWriter(stream), Terminal: IsTerminal(stream), stream: stream}
}

// IsTerminal reports whether a person is probably at the other end of the stream.
func IsTerminal(stream any) bool {
	if s, ok := stream.(*Screen); ok {
		return s.Terminal
	}
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is the width of the terminal at the other end of the stream; 0 where there is none.
func columns(stream any) int {
	if s, ok := stream.(*Screen); ok {
		stream = s.stream
	}
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Fit cuts the lines of a text to the width of the terminal at the other end of the stream. Where there is none, the text
// stays as it is.
func Fit(stream any, text string) string {
	width := columns(stream)
	if width <= 0 {
		return text
	}
	return fit(text, width)
}

func fit(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		b.WriteString(ansi.Truncate(line, width, "…"))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// control writes control sequences, and rows whose texts were escaped, to a terminal.
func control(terminal io.Writer, sequences string) { _, _ = io.WriteString(terminal, sequences) }

// Block is an argument of Printf that may have several lines.
type Block string

// Printf prints for people. Each argument that is text stays on its line, whatever it holds, but for a block and for
// errors, which may have several lines of hako's own.
func Printf(out io.Writer, format string, args ...any) error {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = oneLine(arg)
	}
	_, err := fmt.Fprintf(out, format, shown...)
	return err
}

// Count returns n with noun, a regular one in the singular: "1 tool", "2 tools".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func oneLine(arg any) any {
	switch v := arg.(type) {
	case Block:
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
