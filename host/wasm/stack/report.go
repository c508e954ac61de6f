package stack

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/visible"
)

// Report is what a program printed about the error that ended it. The zero value means that it printed nothing known.
type Report struct {
	// Message is the error, on one line: "TypeError: cannot read property 'bar' of undefined".
	Message string
	// Frames are the functions of the program's own language that it was in, the innermost first, with file and line.
	Frames []string
	// Interpreted reports whether an interpreter ran the program, so that the functions in the trap are those of the
	// interpreter.
	Interpreted bool
}

const (
	// MaxReport bounds the lines of an output that ReadReport looks at: a traceback and a panic.
	MaxReport = 64
	// maxReportFrames bounds Report.Frames; maxReportMessage bounds Report.Message, in characters.
	maxReportFrames  = 30
	maxReportMessage = 500
)

var (
	// rustPanic matches the heading of a panic of Rust's standard library, in which the runtimes of componentize-qjs and
	// componentize-py are written.
	rustPanic = lazyregexp.New(`^thread '.*' (?:\(\d+\) )?panicked at (.+):$`)
	// quickJSError matches the text of an exception that componentize-qjs did not expect: name of the function, message
	// and stack, as strings of Rust.
	quickJSError = lazyregexp.New(
		`^Failed to call '.*': Exception\(Exception \{ message: (?:Some\("(.*)"\)|None), stack: (?:Some\("(.*)"\)|None) \}\)$`)
	// quickJSValue matches the text of a value that componentize-qjs cannot convert to its type in WIT.
	quickJSValue = lazyregexp.New(`^(.+): FromJs \{ from: "(.*)", to: "(.*)", message: (?:Some\("(.*)"\)|None) \}$`)
	quickJSFrame = lazyregexp.New(`^\s*at (.*)$`)
	// pythonValue matches the text of a value that componentize-py cannot convert to its type in WIT.
	pythonValue = lazyregexp.New(`PyErr \{ type: <class '.*'>, value: (\w+)\(["']?(.*?)["']?\), traceback: .* \}$`)
	pythonFrame = lazyregexp.New(`^  File "(.*)", line (\d+), in (.*)$`)
)

const (
	// pythonTraceback is the heading of a traceback.
	pythonTraceback = "Traceback (most recent call last):"
	rustNote        = "note: run with `RUST_BACKTRACE="
)

// ReadReport reads the last report of an error in the lines of an output: a panic of Rust, an exception of Python or one of
// JavaScript in the runtime of componentize-qjs. All lines come from the guest.
func ReadReport(lines []string) (r Report) {
	lines = lines[max(0, len(lines)-MaxReport):]
	defer func() { r.bound() }()
	panicked := lastIndex(lines, func(line string) bool { return rustPanic().MatchString(line) })
	traceback := lastIndex(lines, func(line string) bool { return line == pythonTraceback })
	if panicked < 0 {
		if traceback >= 0 {
			r.readPython(lines[traceback+1:])
			if r.Message != lines[len(lines)-1] {
				return Report{} // of an exception that was caught, since the program went on
			}
		}
		return r
	}
	r.readRust(lines[panicked:])
	if traceback >= 0 && traceback < panicked && !r.Interpreted {
		r = Report{}
		r.readPython(lines[traceback+1 : panicked])
	}
	return r
}

func lastIndex(lines []string, is func(string) bool) int {
	for i, line := range slices.Backward(lines) {
		if is(line) {
			return i
		}
	}
	return -1
}

// readRust reads a panic: its heading, the message, which may have several lines, and a note.
func (r *Report) readRust(lines []string) {
	place := rustPanic().FindStringSubmatch(lines[0])[1]
	message, _, _ := strings.Cut(strings.Join(lines[1:], "\n"), rustNote)
	message = strings.TrimSpace(message)
	if m := quickJSError().FindStringSubmatch(message); m != nil {
		r.Message, r.Interpreted = unquoteRust(m[1]), true
		for line := range strings.SplitSeq(unquoteRust(m[2]), "\n") {
			if m := quickJSFrame().FindStringSubmatch(line); m != nil && !ofLibrary(m[1]) {
				r.Frames = append(r.Frames, strings.ReplaceAll(m[1], "(/", "("))
			}
		}
		return
	}
	if m := quickJSValue().FindStringSubmatch(message); m != nil {
		r.Message, r.Interpreted = m[1], true
		if m[3] != "function" { // of one that is missing, the text says all
			r.Message += ", not " + m[2]
		}
		return
	}
	if m := pythonValue().FindStringSubmatch(message); m != nil {
		r.Message, r.Interpreted = m[1]+": "+m[2], true
		return
	}
	r.Message = message
	r.Frames = []string{place}
}

// ofLibrary reports whether a frame of JavaScript is one of the engine or of hako's PDK, which wraps all functions.
func ofLibrary(frame string) bool {
	return strings.HasSuffix(frame, "(native)") || strings.Contains(frame, "(/pdk/guard.js:")
}

// unquoteRust undoes the escape sequences of a string that Rust printed for programmers.
func unquoteRust(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, "'").Replace(text)
}

// readPython reads a traceback without its heading: the outermost function first, source lines between, the error last.
func (r *Report) readPython(lines []string) {
	r.Interpreted = true
	for _, line := range lines {
		switch m := pythonFrame().FindStringSubmatch(line); {
		case m != nil:
			// The first folder is where componentize-py mounted the sources.
			file := strings.TrimPrefix(strings.TrimPrefix(m[1], "/0/"), "/")
			r.Frames = append(r.Frames, m[3]+" ("+file+":"+m[2]+")")
		case r.Message == "" && !strings.HasPrefix(line, " "):
			r.Message = line
		}
	}
	slices.Reverse(r.Frames)
}

// bound makes texts of a guest presentable.
func (r *Report) bound() {
	line := func(text string, most int) string {
		return clip.Runes(visible.Line(clip.Bytes(strings.Join(strings.Fields(text), " "), 1<<maxDemangled)), most)
	}
	r.Message = line(r.Message, maxReportMessage)
	r.Frames = r.Frames[:min(len(r.Frames), maxReportFrames)]
	for i := range r.Frames {
		r.Frames[i] = line(r.Frames[i], maxName)
	}
}
