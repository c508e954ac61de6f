package demote_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/hako-run/hako/internal/demote"
)

func TestLogger(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "level=DEBUG msg=bad library=x group.n=1\nlevel=DEBUG msg=worse library=x group.n=1\n",
		slog.LevelInfo:  "",
	} {
		var log bytes.Buffer
		logger := demote.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level,
			ReplaceAttr: withoutTime})))
		logger = logger.With("library", "x").WithGroup("group")
		logger.Debug("detail")
		logger.Info("news", "n", 1)
		logger.Warn("bad", "n", 1)
		logger.Error("worse", "n", 1)
		if log.String() != want {
			t.Errorf("%s: %q, want %q", level, log.String(), want)
		}
	}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
