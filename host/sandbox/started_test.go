package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/dev/guestcode"
	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// TestHostileStartedRequests is a guest that starts requests for ever and never waits for one, or waits for the same
// again and again. The server never answers. When the caller leaves, the call ends, and with it what was started.
func TestHostileStartedRequests(t *testing.T) {
	t.Parallel()
	i32 := func(name string, args ...any) guestcode.HostCall {
		return guestcode.HostCall{Module: abi.HTTPModule, Name: name, Args: args, Result: guestcode.I32}
	}
	for name, loop := range map[string]func(start guestcode.HostCall) []guestcode.HostCall{
		"never waits": func(start guestcode.HostCall) []guestcode.HostCall { return []guestcode.HostCall{start} },
		"waits twice": func(start guestcode.HostCall) []guestcode.HostCall {
			return []guestcode.HostCall{start, i32("wait", int32(2)), i32("wait", int32(2)),
				i32("read", int32(1), int32(bufferAt), int32(10))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var arrived, ended atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if arrived.Add(1) == 2 {
					leave()
				}
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			broker, err := httpbroker.New([]grant.HTTPRule{{Name: "test", URL: server.URL}},
				&httpbroker.Options{Observe: func(httpbroker.Observation) { ended.Add(1) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = broker.Close() })
			head := `{"method":"GET","url":"` + server.URL + `"}`
			start := i32("start", int32(pathAt), int32(len(head)), int32(0), int32(0))
			wasm := guestcode.Calls(64, map[int32][]byte{pathAt: []byte(head)}, nil, loop(start))
			engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			plugin := engine.Load(sandbox.Spec{Name: "starter", Wasm: func() ([]byte, error) { return wasm, nil },
				Modules: []brokerModule{broker.Module()}, Limits: manifest.Limits{Time: patience, CPU: 1 << 30}})
			t.Cleanup(func() {
				if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
					t.Error(err)
				}
			})
			if err := plugin.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := plugin.Call(ctx,
				&catalog.Invocation{Request: &abi.Request{Method: abi.CallTool}}); !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
			if n := ended.Load(); n < 2 || n > 8 {
				t.Errorf("%d requests have ended with the call, want between 2 and 8", n)
			}
		})
	}
}
