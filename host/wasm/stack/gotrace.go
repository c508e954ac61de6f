package stack

import (
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// GoTrace rewrites the output of a Go program line by line: a stack trace keeps the functions of the program, each with
// its file and line, and loses those of the runtime and of Library, arguments and addresses. Other lines stay as they
// are. A GoTrace is at the beginning of an output.
type GoTrace struct {
	// Library starts the names of functions of a library that the program's author did not write. Empty means none.
	Library string

	// inside is true within the trace of a goroutine, where function is the one whose file comes next.
	inside   bool
	function string
}

// goroutine is the heading of a trace.
var goroutine = lazyregexp.New(`^(goroutine \d+ .*\[.*\]|runtime stack):$`)

// noise starts the names of functions that say nothing about the program.
var noise = []string{"runtime.", "runtime/", "internal/", "reflect.", "syscall.", "syscall/", "panic",
	"created by runtime."}

// Inside reports whether the last line was of the trace of a goroutine.
func (g *GoTrace) Inside() bool { return g.inside }

// Line reads a line without its end and calls emit for each line to show.
func (g *GoTrace) Line(line string, emit func(line string)) {
	if g.function != "" {
		function := g.function
		g.function = ""
		if place, ok := strings.CutPrefix(line, "\t"); ok {
			place, _, _ = strings.Cut(place, " +0x")
			if !g.noisy(function) {
				emit("  at " + function + " (" + place + ")")
			}
			return
		}
		emit(function)
	}
	switch {
	case goroutine().MatchString(line):
		g.inside = true
		if line != "runtime stack:" {
			emit(line)
		}
	case g.inside && line != "" && isFunction(line):
		g.function = line
		if open := strings.LastIndexByte(line, '('); strings.HasSuffix(line, ")") && open > 0 {
			g.function = line[:open]
		}
	default:
		g.inside = false
		if line != "" {
			emit(line)
		}
	}
}

func isFunction(line string) bool {
	return line[0] != '\t' && (strings.HasSuffix(line, ")") || strings.HasPrefix(line, "created by "))
}

func (g *GoTrace) noisy(function string) bool {
	if g.Library != "" && strings.HasPrefix(function, g.Library) {
		return true
	}
	for _, prefix := range noise {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
