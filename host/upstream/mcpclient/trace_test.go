package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// TestTraceContext passes the trace on to a server, in the metadata of the request, with a span of hako's own; and
// nothing without a trace.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	tracer, err := trace.New(t.Context(), trace.Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = tracer.Close(ended) // nobody is there to take the spans
	})
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	w := newWeb(t)
	r := newRig(t, w.spec("web"))
	metas := make(chan map[string]any, 4)
	real := w.handler
	w.set(func() {
		w.handler = http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
			body, _ := io.ReadAll(q.Body)
			q.Body = io.NopCloser(bytes.NewReader(body))
			var m struct {
				Method string
				Params struct {
					Meta map[string]any `json:"_meta"`
				}
			}
			if json.Unmarshal(body, &m) == nil && m.Method == abi.CallTool {
				metas <- m.Params.Meta
			}
			real.ServeHTTP(out, q)
		})
	})
	call := &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: "web_echo",
		Arguments: json.RawMessage(`{"text":"hello"}`)}}
	if _, err := r.pipeline.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if meta := <-metas; meta[trace.ParentKey] != nil {
		t.Errorf("without a trace the server gets %v", meta)
	}
	ctx, span := tracer.Start(t.Context(), "call", trace.Server,
		trace.Remote{Parent: "00-" + id + "-00f067aa0ba902b7-01", State: "vendor=1"})
	defer span.End()
	if _, err := r.pipeline.Call(ctx, call); err != nil {
		t.Fatal(err)
	}
	meta := <-metas
	parent, _ := meta[trace.ParentKey].(string)
	if len(parent) != 55 || parent[3:35] != id || parent == trace.From(ctx).Parent ||
		meta[trace.StateKey] != "vendor=1" {
		t.Errorf("the server gets %v, and the span above is %s", meta, trace.From(ctx).Parent)
	}
}
