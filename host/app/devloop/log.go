package devloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/sandbox"
)

// NewLogger returns a logger for the host of a Loop. It shows what guests log, at every level, and errors of
// the host.
func NewLogger(out io.Writer) *slog.Logger { return slog.New(&logHandler{out: out}) }

// logHandler writes a record as an indented line.
type logHandler struct {
	out   io.Writer
	attrs []slog.Attr
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) WithGroup(string) slog.Handler { return h }

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.out, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs[:len(h.attrs):len(h.attrs)]
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	ofGuest, rest, stack := false, "", ""
	if r.Message == sandbox.StoppedMessage {
		return nil // the result of the example says it
	}
	for _, a := range attrs {
		switch a.Key {
		case "tool":
			ofGuest = true // a record of a call
		case "plugin":
		case "stack":
			stack = a.Value.String()
		default:
			rest += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
	}
	if !ofGuest && r.Level < slog.LevelError {
		return nil
	}
	err := terminal.Printf(h.out, "  [%s] %s%s\n", strings.ToLower(r.Level.String()), r.Message, rest)
	for line := range strings.Lines(stack) {
		err = errors.Join(err, terminal.Printf(h.out, "    %s\n", strings.TrimSuffix(line, "\n")))
	}
	return err
}
