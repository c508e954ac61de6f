package trace

import (
	"context"
	"log/slog"
)

// logKey and callKey are the attributes of log records with the IDs of their trace and call.
const (
	logKey  = "trace"
	callKey = "call"
)

// Handler adds the IDs of the context's trace and call to every record.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	var ids []slog.Attr
	if id := ID(ctx); id != "" {
		ids = append(ids, slog.String(logKey, id))
	}
	if at, ok := ctx.Value(positionKey{}).(position); ok && at.recording.id != "" {
		ids = append(ids, slog.String(callKey, at.recording.id))
	}
	if len(ids) > 0 {
		record = record.Clone()
		record.AddAttrs(ids...)
	}
	return h.Handler.Handle(ctx, record)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
