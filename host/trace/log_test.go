package trace_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/trace"
)

// TestHandler names the trace and the call in records of a context that has them, whatever was narrowed before.
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
	recorded, _ := trace.Record(ctx, "call_1")
	logger.InfoContext(recorded, "call")
	if n := strings.Count(out.String(), "trace="+remoteTrace); n != 2 ||
		!strings.Contains(out.String(), "msg=inside plugin=weather trace="+remoteTrace+"\n") ||
		!strings.Contains(out.String(), "msg=call plugin=weather trace="+remoteTrace+" call=call_1\n") {
		t.Errorf("got %s", out.String())
	}
}
