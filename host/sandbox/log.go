package sandbox

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/internal/stack"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// logSink logs the records of a guest in one call, up to a number of bytes.
type logSink struct {
	ctx    context.Context // the call's, for its trace
	logger *slog.Logger
	redact func(string) string // may be nil
	call   *call
	left   int64
	// partial holds unfinished lines of standard output and error, traces the stack traces in each.
	partial map[abi.LogLevel][]byte
	traces  map[abi.LogLevel]*stack.GoTrace
}

// maxLine bounds a log record, in bytes.
const maxLine = 8 << 10

// admit reports whether n more bytes may be logged. The first refusal is logged.
func (s *logSink) admit(n int64) bool {
	if n <= s.left {
		s.left -= n
		return true
	}
	if s.left >= 0 {
		s.logger.WarnContext(s.ctx, "the plugin passed its log limit: the rest of this call's records are dropped",
			"tool", s.call.Tool)
	}
	s.left = -1
	return false
}

// emit logs a record of the guest. One with the stack of a Go program, which a panic of a handler is, is logged line by
// line.
func (s *logSink) emit(level abi.LogLevel, text string) {
	text = s.screen(text)
	if strings.Contains(text, "\ngoroutine ") {
		s.emitLines(level, text, new(stack.GoTrace))
	} else if text != "" {
		s.record(level, text)
	}
}

// emitLines logs each line of a screened text, with the stack traces of Go programs made readable.
func (s *logSink) emitLines(level abi.LogLevel, text string, goTrace *stack.GoTrace) {
	for line := range strings.Lines(text) {
		goTrace.Line(strings.TrimRight(line, "\r\n"), func(line string) { s.record(level, line) })
	}
}

// screen charges a text and returns the part of it that may be logged.
func (s *logSink) screen(text string) string {
	const longest = 2 * maxLine // redaction must see a secret that begins before the cut to its end
	text = text[:min(len(text), longest)]
	s.call.Charge(broker.LineSteps + int64(len(text))*broker.TextSteps)
	if s.redact != nil {
		text = s.redact(text)
	}
	if len(text) > maxLine {
		text = text[:maxLine] + " (cut)"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func (s *logSink) record(level abi.LogLevel, text string) {
	slogLevel := max(slog.LevelDebug, min(slog.LevelError, slog.Level(level)))
	s.logger.Log(s.ctx, slogLevel, text, "tool", s.call.Tool)
	trace.Log(s.ctx, slogLevel, text)
}

// output is a guest's standard output or error. Each line becomes a log record of the running call.
type output struct {
	instance *instance
	level    abi.LogLevel
}

// Write never fails: bytes beyond the log limit are dropped. A long line is logged in pieces of maxLine.
func (o *output) Write(p []byte) (int, error) {
	(&Guest{o.instance.call}).Print(o.level, p)
	return len(p), nil
}

// trace returns the state of the stack traces in an output.
func (s *logSink) trace(level abi.LogLevel) *stack.GoTrace {
	if s.traces == nil {
		s.traces = map[abi.LogLevel]*stack.GoTrace{}
	}
	if s.traces[level] == nil {
		s.traces[level] = new(stack.GoTrace)
	}
	return s.traces[level]
}

func (s *logSink) write(level abi.LogLevel, p []byte) {
	if s.partial == nil {
		s.partial = map[abi.LogLevel][]byte{}
	}
	pending := append(s.partial[level], p...)
	for {
		line, rest, ended := bytes.Cut(pending, []byte("\n"))
		if !ended && len(pending) < maxLine {
			s.partial[level] = pending
			return
		}
		if text := strings.TrimRight(string(line), " \r\t"); text != "" {
			s.emitLines(level, s.screen(text), s.trace(level))
		}
		pending = rest
	}
}
