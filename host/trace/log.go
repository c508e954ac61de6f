package trace

import (
	"context"
	"log/slog"
)

// LogKey is the attribute of log records with their trace ID.
const LogKey = "trace"

// Handler adds the trace ID of the context to every record.
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
