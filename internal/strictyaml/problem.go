package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/pdk/locale"
)

// maxProblems bounds the problems that one Error lists.
const maxProblems = 20

// Problem is one thing that is wrong with a document or a value.
type Problem struct {
	// Line and Column say where, counted from 1. Zero means unknown: a syntax error has no column, and what did not
	// come from a document has neither.
	Line, Column int
	// Path is the place within the document, such as "tools[0].inputSchema". Empty means the whole.
	Path string
	// Message names the rule, and the remedy where there is one, in English.
	Message string
	// text is the format of Message with its values, if it has other languages.
	text *locale.Error
}

// newProblem returns a problem whose text is in all languages that texts has the format in.
func newProblem(line, column int, path, format string, args ...any) Problem {
	text := textOf(format).Errorf(args...)
	return Problem{line, column, path, text.Error(), text}
}

// String returns the problem on one line: position, path and message, as far as they are known.
func (p Problem) String() string { return p.In("en") }

// In returns String in a language, a BCP 47 tag.
func (p Problem) In(language string) string { return p.said().In(language) }

// said is the problem in all languages.
func (p Problem) said() *locale.Error {
	place, path, text := locale.Text{"en": ""}.Errorf(), "", p.text
	switch {
	case p.Column > 0:
		place = locale.Text{"en": "%d:%d: "}.Errorf(p.Line, p.Column)
	case p.Line > 0:
		place = textOf("line %d: ").Errorf(p.Line)
	}
	if p.Path != "" {
		path = p.Path + ": "
	}
	if text == nil {
		text = locale.Text{"en": "%s"}.Errorf(p.Message)
	}
	return locale.Text{"en": "%s%s%s"}.Errorf(place, path, text)
}

// Error lists the problems of one document or value, so that its author can mend them all at once. Its zero value is an
// empty list to Add to.
type Error struct {
	// Problems are at most 20.
	Problems []Problem
	// Omitted counts those beyond.
	Omitted int
}

// Lines returns each problem in a line with its place, as editors understand it, and in the last line how many more
// there are. kind is a word such as "error", language a BCP 47 tag.
func (e *Error) Lines(path, kind, language string) (lines []string) {
	for _, p := range e.Problems {
		place := path
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", path, p.Line, max(p.Column, 1))
		}
		p.Line, p.Column = 0, 0
		lines = append(lines, fmt.Sprintf("%s: %s: %s", place, kind, p.In(language)))
	}
	if e.Omitted > 0 {
		lines = append(lines, path+": "+textOf("and %d more").Errorf(e.Omitted).In(language))
	}
	return lines
}

// Error returns one problem per line, in English.
func (e *Error) Error() string { return e.In("en") }

// In returns one problem per line in a language, a BCP 47 tag.
func (e *Error) In(language string) string { return e.said().In(language) }

// As gives [locale.In] the problems in all languages, also if another error wraps e.
func (e *Error) As(target any) bool {
	said, ok := target.(**locale.Error)
	if ok {
		*said = e.said()
	}
	return ok
}

func (e *Error) said() *locale.Error {
	lines := make([]any, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.said())
	}
	if e.Omitted > 0 {
		lines = append(lines, textOf("and %d more").Errorf(e.Omitted))
	}
	return locale.Text{"en": strings.TrimSuffix(strings.Repeat("%s\n", len(lines)), "\n")}.Errorf(lines...)
}

// Add appends a problem at path. Values that are a [locale.Error] are in the language of the problem.
func (e *Error) Add(path, format string, args ...any) {
	e.add(newProblem(0, 0, path, format, args...))
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
