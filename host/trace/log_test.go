package trace_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/trace"
)

// TestHandler names the trace in records of a context that has one, whatever was narrowed before.
func TestHandler(t *testing.T) {
	t.Parallel()
	r := receive(t)
	tracer, err := trace.New(t.Context(), trace.Options{Endpoint: r.url})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(t.Context())
	ctx, span := tracer.Start(t.Context(), "call", trace.Server, remote)
	defer span.End()
	var out bytes.Buffer
	logger := slog.New(trace.Handler(slog.NewTextHandler(&out, nil))).With("plugin", "weather")
	logger.InfoContext(ctx, "inside")
	logger.InfoContext(t.Context(), "outside")
	logger.Info("anywhere")
	if n := strings.Count(out.String(), "trace="+remoteTrace); n != 1 ||
		!strings.Contains(out.String(), "msg=inside plugin=weather trace="+remoteTrace) {
		t.Errorf("got %s", out.String())
	}
}
