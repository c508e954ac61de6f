// Package stack makes the stack traces of guests readable. Parse reads the Frames that the runtime appends to a trap,
// and a GoTrace shortens the panics that Go programs print.
//
// All text comes from guests and is untrusted: lines are bounded, and hidden characters are escaped.
package stack

import (
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/visible"
)

const (
	// maxFrames bounds the frames of a trap. The runtime itself stops at 30 for each call of a module.
	maxFrames = 60
	// maxMangled bounds the names that are demangled, in bytes: the result may be much longer.
	maxMangled = 1 << 10
	// maxName bounds a name that is shown, in characters.
	maxName = 200
	// maxDemangled bounds the demangled name, as a power of two.
	maxDemangled = 12
)

// Frame is a function in a stack trace of the runtime.
type Frame struct {
	// Module is the name of the module, Function the index of the function in it. Host is the name of a host function
	// instead.
	Module   string
	Function uint32
	Host     string
}

const (
	// traceHeading precedes the frames in the runtime's text of an error.
	traceHeading = "wasm stack trace:"
	// goHeading precedes a stack trace of the host itself.
	goHeading = "Go runtime stack trace:"
)

// Parse returns the frames in the text of an error of the runtime, the innermost first. A host function that called the
// guest again has a trace within a trace.
func Parse(text string) (frames []Frame) {
	_, text, _ = strings.Cut(text, traceHeading)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == goHeading || len(frames) == maxFrames {
			break
		}
		if signature, ok := strings.CutPrefix(line, "\t"); ok {
			if frame, ok := parseFrame(signature); ok {
				frames = append(frames, frame)
			}
		}
	}
	return frames
}

// function matches the signature of a function without a name.
var function = lazyregexp.New(`^([^$]*)\.\$(\d+)\(`)

func parseFrame(signature string) (f Frame, ok bool) {
	if m := function().FindStringSubmatch(signature); m != nil {
		index, err := strconv.ParseUint(m[2], 10, 32)
		return Frame{Module: m[1], Function: uint32(index)}, err == nil
	}
	name, _, ok := strings.Cut(signature, "(")
	return Frame{Host: name}, ok
}

// legacyRust matches the older names of Rust. A name that begins with _R is of the newer form.
var legacyRust = lazyregexp.New(`^_ZN([0-9]+[A-Za-z0-9_.$]+)+17h[0-9a-f]{16}E$`)

// Readable returns the name of a function for people: on one line, bounded, and demangled if it is one of Rust. Linkers
// demangle the names of C++ themselves; the demangler takes exponential time for some that they do not write.
func Readable(name string) (readable string) {
	readable = name
	defer func() {
		_ = recover() // the demangler met a name that it does not expect: it stays as it is
		readable = clip.Runes(visible.Line(clip.Bytes(readable, 1<<maxDemangled)), maxName)
	}()
	if len(name) <= maxMangled && (strings.HasPrefix(name, "_R") || legacyRust().MatchString(name)) {
		readable = demangle.Filter(name, demangle.NoParams, demangle.MaxLength(maxDemangled))
	}
	return readable
}

// WithoutPanic drops the functions of Rust's standard library between a panic and the abort, which are the innermost of
// a stack of readable names, which lines in the source may follow.
func WithoutPanic(names []string) []string {
	for i := len(names) - 1; i > 0; i-- {
		name, _, _ := strings.Cut(names[i], " (")
		if strings.HasPrefix(name, "core::panicking::") || strings.HasSuffix(name, "rust_begin_unwind") {
			return names[i+1:]
		}
	}
	return names
}
