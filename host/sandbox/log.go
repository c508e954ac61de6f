package sandbox

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// logSink passes on what a guest logs in one call, up to a number of bytes.
type logSink struct {
	logger *slog.Logger
	left   int64
}

// maxLine bounds one log record, in bytes.
const maxLine = 8 << 10

// admit says whether n more bytes may be logged. The first refusal is itself logged.
func (s *logSink) admit(n int64) bool {
	if n <= s.left {
		s.left -= n
		return true
	}
	if s.left >= 0 {
		s.logger.Warn("the plugin passed its log limit: the rest of this call's records are dropped")
	}
	s.left = -1
	return false
}

func (s *logSink) emit(level abi.LogLevel, text string) {
	if len(text) > maxLine {
		text = text[:maxLine] + " (cut)"
	}
	s.logger.Log(context.Background(), clamp(slog.Level(level)), strings.ToValidUTF8(text, "\uFFFD"))
}

func clamp(level slog.Level) slog.Level {
	return max(slog.LevelDebug, min(slog.LevelError, level))
}

// lines returns a writer that logs each line; it stands for the guest's standard output or error.
func (s *logSink) lines(level abi.LogLevel) io.Writer { return &lineWriter{sink: s, level: level} }

type lineWriter struct {
	sink    *logSink
	level   abi.LogLevel
	partial []byte
}

// Write never fails: what the log limit does not admit is dropped. A line that never ends is logged in pieces of maxLine.
func (w *lineWriter) Write(p []byte) (int, error) {
	if !w.sink.admit(int64(len(p))) {
		return len(p), nil
	}
	w.partial = append(w.partial, p...)
	for {
		line, rest, ended := bytes.Cut(w.partial, []byte("\n"))
		if !ended && len(w.partial) < maxLine {
			return len(p), nil
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			w.sink.emit(w.level, text)
		}
		w.partial = rest
	}
}
