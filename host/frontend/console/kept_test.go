package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestFinishedCallsAreFree makes large calls through a host with a console, an audit log and a policy. The console lists
// them, and keeps neither their requests, nor their responses, nor their contexts.
func TestFinishedCallsAreFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "echo"}, manifest.Tool{Name: "forbidden"})
	w.offer("broken", backend(func(context.Context, *catalog.Invocation) (*abi.Response, error) {
		return nil, errors.New("the disk is full")
	}), manifest.Tool{Name: "broken"})
	type inContext struct{}
	var tracker memorytest.Tracker
	for _, tool := range []string{"echo", "broken", "unknown", "forbidden"} {
		func() {
			arguments := tracker.Bytes("the request of "+tool, []byte(`{"text":"`+strings.Repeat("x", 1<<20)+`"}`))
			value := tracker.Bytes("the context of "+tool, make([]byte, 1<<10))
			result, err := w.host.Call(context.WithValue(t.Context(), inContext{}, value), &pipeline.Call{
				Caller:  pipeline.Caller{Frontend: pipeline.FrontendHTTP, User: "aki"},
				Request: abi.Request{Method: abi.CallTool, Name: tool, Arguments: arguments},
			})
			if tool == "echo" {
				if err != nil {
					t.Fatal(err)
				}
				tracker.Text("the response of "+tool, result.Response.Content[0].Text)
			}
		}()
	}
	tracker.Check(t)
	var calls, failures struct{ Items []json.RawMessage }
	b := w.as(console.Viewer)
	b.get("calls/finished").into(t, &calls)
	b.get("errors").into(t, &failures)
	if len(calls.Items) != 4 || len(failures.Items) != 3 {
		t.Errorf("the console lists %d calls and %d failures", len(calls.Items), len(failures.Items))
	}
	runtime.KeepAlive(w)
}
