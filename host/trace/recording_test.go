package trace_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/trace"
)

// TestRecording: without a tracer, the spans and log lines of a call are kept, with their order and what is in them.
func TestRecording(t *testing.T) {
	t.Parallel()
	ctx, recording := trace.Record(t.Context(), "call_1")
	outer, sandbox := trace.Start(ctx, "sandbox", trace.Internal)
	sandbox.Text(trace.Plugin, "weather")
	_, request := trace.Start(outer, "http", trace.Client)
	if got := recording.Current(); got != "http" {
		t.Errorf("the current step is %q", got)
	}
	request.Name("http GET")
	request.Int(trace.HTTPStatus, 503)
	request.Fail("503")
	request.End()
	request.Text(trace.Rule, "too late")
	trace.Log(outer, slog.LevelWarn, "retrying")
	s := recording.Snapshot()
	if len(s.Steps) != 2 || len(s.Lines) != 1 || s.Lines[0].Text != "retrying" || s.Lines[0].Level != slog.LevelWarn {
		t.Fatalf("%+v", s)
	}
	if step := s.Steps[0]; step.Name != "sandbox" || step.Parent != -1 || !step.Running ||
		fmt.Sprint(step.Attributes) != "[{hako.plugin weather}]" {
		t.Errorf("the outer step: %+v", step)
	}
	if step := s.Steps[1]; step.Name != "http GET" || step.Parent != 0 || step.Running || step.Failure != "503" ||
		step.Duration <= 0 || fmt.Sprint(step.Attributes) != "[{http.response.status_code 503}]" {
		t.Errorf("the inner step: %+v", step)
	}
	if got := recording.Current(); got != "sandbox" {
		t.Errorf("the current step is %q", got)
	}
	if ctx, span := trace.Start(t.Context(), "none", trace.Internal); span != nil || ctx != t.Context() {
		t.Error("a span is made that nobody records")
	}
	trace.Log(t.Context(), slog.LevelInfo, "nowhere")
}

// TestRecordingIsBounded: a guest can make as many steps and log lines as it wants.
func TestRecordingIsBounded(t *testing.T) {
	t.Parallel()
	ctx, recording := trace.Record(t.Context(), "call_1")
	long := strings.Repeat("長", 10_000)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 500 {
				_, span := trace.Start(ctx, long, trace.Internal)
				for range 100 {
					span.Text(trace.Rule, long)
				}
				span.Name(long)
				span.End()
				trace.Log(ctx, slog.LevelInfo, long)
				trace.Log(ctx, slog.LevelInfo, "")
				recording.Snapshot()
			}
		})
	}
	workers.Wait()
	size, s := 0, recording.Snapshot()
	for _, step := range s.Steps {
		size += len(step.Name)
		for _, a := range step.Attributes {
			size += len(a.Value.(string))
		}
	}
	for _, line := range s.Lines {
		size += len(line.Text)
	}
	if size > 120<<10 || s.DroppedSteps+len(s.Steps) != 4000 || s.DroppedLines+len(s.Lines) != 8000 ||
		len(s.Lines) == 0 {
		t.Errorf("%d bytes; %d steps and %d lines, %d and %d dropped", size, len(s.Steps), len(s.Lines),
			s.DroppedSteps, s.DroppedLines)
	}
}
