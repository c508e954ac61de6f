package terminal

import (
	"bufio"
	"context"
	"io"
)

// Lines reads what a person types, line by line, for the prompt or for a question in the middle of a turn.
type Lines struct {
	// Typed delivers the lines. It is closed at the end of the input.
	Typed chan string
}

// maxLine is the longest line, in bytes.
const maxLine = 1 << 20

// newLines starts to read in. Its goroutine ends with the input, or with the process.
func newLines(in io.Reader) *Lines {
	l := &Lines{make(chan string)}
	go func() {
		defer close(l.Typed)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			l.Typed <- scanner.Text()
		}
	}()
	return l
}

// drop discards a line that was typed already. A question calls it before it is shown: whoever sees the question may
// answer at once.
func (l *Lines) drop() {
	select {
	case <-l.Typed:
	default:
	}
}

// next returns the next line. The end of the input is io.EOF.
func (l *Lines) next(ctx context.Context) (string, error) {
	select {
	case line, ok := <-l.Typed:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
