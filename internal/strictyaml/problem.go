package strictyaml

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems is how many problems one Error lists.
const maxProblems = 20

// Problem is one thing that is wrong with a document or a value.
type Problem struct {
	// Line and Column say where, counted from 1. Zero means unknown: a syntax error has no column, and what did not
	// come from a document has neither.
	Line, Column int
	// Path is the place within the document, such as "tools[0].inputSchema". Empty means the whole.
	Path string
	// Message names the rule, and the remedy where there is one.
	Message string
}

// String returns the problem on one line: position, path and message, as far as they are known.
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Column > 0:
		fmt.Fprintf(&b, "%d:%d: ", p.Line, p.Column)
	case p.Line > 0:
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error lists the problems of one document or value, so that its author can mend them all at once. Its zero value is an
// empty list to Add to.
type Error struct {
	// Problems are at most 20.
	Problems []Problem
	// Omitted counts those beyond.
	Omitted int
}

// Lines returns each problem in a line with its place, as editors understand it. kind is a word such as "error".
func (e *Error) Lines(path, kind string) (lines []string) {
	for _, p := range e.Problems {
		place := path
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", path, p.Line, max(p.Column, 1))
		}
		p.Line, p.Column = 0, 0
		lines = append(lines, fmt.Sprintf("%s: %s: %s", place, kind, p.String()))
	}
	return lines
}

// Error returns one problem per line.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// Add appends a problem at path.
func (e *Error) Add(path, format string, args ...any) {
	e.add(Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Err returns e, or nil if it holds no problem.
func (e *Error) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

func (e *Error) add(p Problem) {
	if len(e.Problems) == maxProblems {
		e.Omitted++
		return
	}
	e.Problems = append(e.Problems, p)
}

// sort puts the problems into the document's order.
func (e *Error) sort() {
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
