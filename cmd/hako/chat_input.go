package main

import (
	"bufio"
	"context"
	"io"
)

// lines are what a person types, one line after the other, for whoever wants the next one: the prompt, or a question in
// the middle of a turn.
type lines struct {
	typed chan string
}

// maxLine is the longest line, in bytes.
const maxLine = 1 << 20

// newLines reads in from now on. Its goroutine ends with the input, or with the process if nothing more is typed.
func newLines(in io.Reader) *lines {
	l := &lines{make(chan string)}
	go func() {
		defer close(l.typed)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			l.typed <- scanner.Text()
		}
	}()
	return l
}

// fresh returns the next line that is typed from now on: one that was typed before the question is no answer to it.
func (l *lines) fresh(ctx context.Context) (string, error) {
	l.drop()
	return l.next(ctx)
}

// drop forgets a line that was typed already.
func (l *lines) drop() {
	select {
	case <-l.typed:
	default:
	}
}

// next returns the next line. The end of the input is io.EOF.
func (l *lines) next(ctx context.Context) (string, error) {
	select {
	case line, ok := <-l.typed:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
