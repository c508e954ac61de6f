package trace

import (
	"context"
	"log/slog"
)

// LogKey is the attribute of log records that names their trace.
const LogKey = "trace"

// Handler adds to every record the trace that its context belongs to.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	if id := ID(ctx); id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String(LogKey, id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
