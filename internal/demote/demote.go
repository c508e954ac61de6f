// Package demote lowers the level of a library's log records: Logger returns a logger that does so.
package demote

import (
	"context"
	"log/slog"
)

// Logger returns a logger that passes warnings and errors on to logger at debug level and drops other records. A
// library knows what failed, but not whether a person should act.
func Logger(logger *slog.Logger) *slog.Logger { return slog.New(handler{logger.Handler()}) }

type handler struct{ slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h handler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, record)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
