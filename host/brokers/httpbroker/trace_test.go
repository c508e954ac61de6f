package httpbroker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// tracer records spans and sends them to nobody.
func tracer(t *testing.T) *trace.Tracer {
	t.Helper()
	tracer, err := trace.New(t.Context(), trace.Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = tracer.Close(ended)
	})
	return tracer
}

// TestTraceContext tells a server of the trace where the operator wants that, and no other; what a guest says of traces
// is its own business there.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(server.Close)
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	remote := trace.Remote{Parent: "00-" + id + "-00f067aa0ba902b7-01", State: "vendor=1"}
	ctx, span := tracer(t).Start(t.Context(), "call", trace.Server, remote)
	defer span.End()
	for name, test := range map[string]struct {
		ctx           context.Context
		on            bool
		guest         string
		parent, state string
	}{
		"not wanted": {ctx: ctx},
		"wanted":     {ctx: ctx, on: true, parent: id, state: "vendor=1"},
		"in the place of a guest": {ctx: ctx, on: true, guest: "00-" + strings.Repeat("1", 32) +
			"-00f067aa0ba902b7-01", parent: id, state: "vendor=1"},
		"without a trace": {ctx: t.Context(), on: true},
	} {
		b := newBroker(t, &Options{Rules: map[string]RuleOptions{"test": {Trace: test.on}}}, everything(server.URL))
		head := &abi.HTTPRequest{URL: server.URL}
		if test.guest != "" {
			head.Headers = map[string][]string{"Traceparent": {test.guest}}
		}
		if _, err := doCtx(t, test.ctx, b, head, ""); err != nil {
			t.Fatal(err)
		}
		parent := got.Get(trace.ParentKey)
		if test.parent == "" && parent != "" || !strings.Contains(parent, test.parent) ||
			strings.Contains(parent, "00f067aa0ba902b7") || got.Get(trace.StateKey) != test.state {
			t.Errorf("%s: the server got %q, %q", name, parent, got.Get(trace.StateKey))
		}
	}
}
