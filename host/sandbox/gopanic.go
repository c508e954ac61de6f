package sandbox

import (
	"strings"

	"github.com/hako-run/hako/host/wasm/stack"
	"github.com/hako-run/hako/pdk/abi"
)

// goPanic collects the output of a panicking Go program, which arrives in parts, into one log record.
type goPanic struct {
	trace stack.GoTrace
	// message has the lines before the stack, frames the lines of the stack.
	message, frames []string
}

// pdkPackage starts the names of the PDK's functions.
const pdkPackage = "github.com/hako-run/hako/pdk."

// maxPanicMessage bounds the lines of a panic's message that are waited for.
const maxPanicMessage = 10

// panicOf returns the state of the panic in an output.
func (s *logSink) panicOf(level abi.LogLevel) *goPanic {
	if s.panics == nil {
		s.panics = map[abi.LogLevel]*goPanic{}
	}
	if s.panics[level] == nil {
		s.panics[level] = &goPanic{trace: stack.GoTrace{Library: pdkPackage}}
	}
	return s.panics[level]
}

// emitLines logs each line of a screened text. The lines of a Go program's panic are kept back, until something else
// follows or the call ends.
func (s *logSink) emitLines(level abi.LogLevel, text string) {
	p := s.panicOf(level)
	for line := range strings.Lines(text) {
		p.trace.Line(strings.TrimRight(line, "\r\n"), func(line string) {
			switch {
			case p.trace.Inside():
				p.frames = append(p.frames, line)
				return
			case len(p.frames) > 0:
				s.flushPanic(level)
			}
			begins := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
			if begins || len(p.message) > 0 && len(p.message) < maxPanicMessage {
				p.message = append(p.message, line)
				return
			}
			s.flushPanic(level)
			s.record(level, line)
		})
	}
}

// flushPanic logs the panic in an output, with its stack in a field. Lines that no stack followed are ordinary ones.
func (s *logSink) flushPanic(level abi.LogLevel) {
	p := s.panicOf(level)
	message, frames := p.message, p.frames
	p.message, p.frames = nil, nil
	if len(frames) == 0 {
		for _, line := range message {
			s.record(level, line)
		}
		return
	}
	if len(message) == 0 { // a stack that was printed without a panic
		message, frames = frames[:1], frames[1:]
	}
	s.record(level, cut(strings.Join(message, " ")), "stack", cut(strings.Join(frames, "\n")))
}

// flush logs what was kept back.
func (s *logSink) flush() {
	for level := range s.panics {
		s.flushPanic(level)
	}
}
