package sandbox

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/host/wasm/stack"
	"github.com/hako-run/hako/pdk/abi"
)

// logSink logs the records of a guest in one call, up to a number of bytes.
type logSink struct {
	ctx    context.Context // the call's, for its trace
	logger *slog.Logger
	redact func(string) string // may be nil
	call   *call
	left   int64
	// partial holds unfinished lines of standard output and error, panics the panics of Go programs in each.
	partial map[abi.LogLevel][]byte
	panics  map[abi.LogLevel]*goPanic
	// last are the last lines of standard error, for what they say about a trap.
	last []string
}

// maxLine bounds a log record and the stack in it, in bytes.
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

// emit logs a record of the guest. The stack of a Go program in it, which the panic of a handler has, becomes a field.
func (s *logSink) emit(level abi.LogLevel, text string) {
	text = s.screen(text)
	if strings.Contains(text, "\ngoroutine ") {
		s.flush()
		s.emitLines(level, text)
		s.flush()
	} else if text != "" {
		s.record(level, text)
	}
}

// screen charges a text and returns the part of it that may be logged.
func (s *logSink) screen(text string) string {
	const longest = 2 * maxLine // redaction must see a secret that begins before the cut to its end
	text = text[:min(len(text), longest)]
	s.call.Charge(broker.LineSteps + int64(len(text))*fuel.TextSteps)
	if s.redact != nil {
		text = s.redact(text)
	}
	return cut(text)
}

// cut bounds a text to maxLine, and makes it valid UTF-8.
func cut(text string) string {
	if len(text) > maxLine {
		text = text[:maxLine] + " (cut)"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

type guestRecordKey struct{}

// IsGuestRecord reports whether the context of a log record says that a guest wrote it.
func IsGuestRecord(ctx context.Context) bool { return ctx.Value(guestRecordKey{}) != nil }

func (s *logSink) record(level abi.LogLevel, text string, attrs ...any) {
	slogLevel := max(slog.LevelDebug, min(slog.LevelError, slog.Level(level)))
	s.logger.Log(context.WithValue(s.ctx, guestRecordKey{}, true), slogLevel, text, append([]any{"tool", s.call.Tool}, attrs...)...)
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
			text = s.screen(text)
			s.remember(level, text)
			s.emitLines(level, text)
		}
		pending = rest
	}
}

// remember keeps a line for report.
func (s *logSink) remember(level abi.LogLevel, line string) {
	if level < abi.LogWarn {
		return
	}
	if len(s.last) == stack.MaxReport {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, line)
}

// report reads what the guest has printed about the error that ended it.
func (s *logSink) report() stack.Report { return stack.ReadReport(s.last) }

// end logs what was kept back: unfinished lines and panics. The call is over, so it charges nothing.
func (s *logSink) end() {
	for level, text := range s.partial {
		if line := strings.TrimRight(string(text), " \r\t"); line != "" {
			if s.redact != nil {
				line = s.redact(line)
			}
			s.emitLines(level, cut(line))
		}
	}
	s.partial = nil
	s.flush()
}
