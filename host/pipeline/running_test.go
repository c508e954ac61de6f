package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestStop: a stopped call ends with an error that says so, however its backend takes the cancellation. A result that
// is there is delivered.
func TestStop(t *testing.T) {
	t.Parallel()
	const want = "an operator of this server stopped the call"
	for _, test := range []struct {
		name     string
		response *abi.Response
		err      error
		outcome  pipeline.Outcome
	}{
		{"canceled", nil, context.Canceled, pipeline.Stopped},
		{"the tool fails", &abi.Response{IsError: true, Content: text("it was canceled").Content}, nil, pipeline.Stopped},
		{"too late", text("fine"), nil, pipeline.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.backend.answer = func() (*abi.Response, error) {
				f.backend.invocation.Progress(abi.Progress{Progress: 1, Total: 4, Message: "a quarter"})
				state := f.observer.running.State()
				if state.Name != "p_free" || state.Source != "test" || state.Progress.Message != "a quarter" {
					t.Errorf("state = %+v", state)
				}
				f.observer.running.Stop()
				return test.response, test.err
			}
			result, err := f.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_free",
				Arguments: json.RawMessage(`{"n":1}`)}})
			if err != nil || result.Outcome != test.outcome {
				t.Fatalf("%+v, %v", result, err)
			}
			said := result.Response.Content[0].Text
			if test.outcome == pipeline.Stopped && (!result.Response.IsError || !strings.Contains(said, want)) {
				t.Errorf("the caller reads %q", said)
			}
			if r := f.observer.last; r.ID == "" || r.ID != f.observer.running.ID || r.Outcome != test.outcome {
				t.Errorf("record = %+v", r)
			}
			f.observer.running.Stop() // after the end
		})
	}
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) {
		f.observer.running.Stop()
		return nil, context.Canceled
	}
	_, err := f.Call(t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.ReadResource, URI: "test://fixed"}})
	if !errors.Is(err, pipeline.ErrStopped) {
		t.Errorf("a resource: %v", err)
	}
}

// TestDelivery: the memory of a response is charged until the caller's context ends, not that of the call.
func TestDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.backend.answer = func() (*abi.Response, error) { return text("fine"), nil }
	ctx, delivered := context.WithCancel(t.Context())
	if _, err := f.Call(ctx, &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "p_free",
		Arguments: json.RawMessage(`{"n":1}`)}}); err != nil {
		t.Fatal(err)
	}
	delivery := f.backend.invocation.Delivery
	if delivery == nil || delivery.Err() != nil {
		t.Fatalf("it counts as delivered when the call ends: %v", delivery)
	}
	if delivered(); delivery.Err() == nil {
		t.Error("it never counts as delivered")
	}
}
