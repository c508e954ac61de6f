package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/pipeline"
)

// TestOnlyInitializeOpensASession: nothing else without a session costs one.
func TestOnlyInitializeOpensASession(t *testing.T) {
	t.Parallel()
	s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
	tests := map[string]struct {
		body string
		code int
	}{
		"list":                          {`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, jsonrpc.CodeInvalidRequest},
		"batch":                         {`[` + initialize(withSessions) + `]`, jsonrpc.CodeInvalidRequest},
		"not JSON":                      {`{"jsonrpc"`, jsonrpc.CodeParseError},
		"no text":                       {``, jsonrpc.CodeParseError},
		"2026-07-28 without its header": {message(withoutSessions, 5, "tools/list", `{}`), mcp.CodeHeaderMismatch},
	}
	for name, test := range tests {
		w := do(s.Handler(), post(withSessions, test.body, "Mcp-Protocol-Version", ""))
		if w.Code != http.StatusBadRequest || answerOf(t, w).Error.Code != test.code {
			t.Errorf("%s: %d %s, want 400 with code %d", name, w.Code, w.Body, test.code)
		}
	}
	if n := s.sessions.count(); n != 0 {
		t.Errorf("%d sessions, want none", n)
	}
}

func TestRateOverHTTP(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newServer(t, offer(t, serveEverything, "x"), nil,
					&Options{Limits: limits.Limits{Rate: 1, Burst: 5}}).Handler()
				var headers []string
				if version < withoutSessions {
					headers = []string{"Mcp-Session-Id", openSession(t, h)}
					time.Sleep(time.Minute)
				}
				for i := range 7 {
					w := do(h, post(version, message(version, i, "tools/list", `{}`), headers...))
					switch {
					case i < 5 && w.Code != http.StatusOK:
						t.Errorf("request %d: %d %s", i, w.Code, w.Body)
					case i >= 5 && (w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
						answerOf(t, w).Error.Code != codeBusy):
						t.Errorf("request %d: %d %v %s", i, w.Code, w.Header(), w.Body)
					}
				}
			})
		})
	}
}

func TestLimitsOverStdio(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, started, _ := blocking()
		s := newServer(
			t,
			offer(t, nil, "x"),
			calls,
			&Options{Limits: limits.Limits{CallsPerClient: 1, Rate: 1, Burst: 5}},
		)
		client := connectStdio(t, s, withSessions, nil) // takes one
		go client.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
		<-started
		busy := func(want string) {
			t.Helper()
			_, err := client.ListTools(t.Context(), nil)
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != codeBusy || !strings.Contains(wire.Message, want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		busy("in flight")
		busy("in flight")
		busy("in flight")
		busy("the limit is 1 a second")
		s.Close()
	})
}

// TestCancellationPassesTheLimit: a client with too many calls in flight must be able to cancel them.
func TestCancellationPassesTheLimit(t *testing.T) {
	t.Parallel()
	calls, started, stopped := blocking()
	h := newServer(t, offer(t, nil, "x"), calls, &Options{Limits: limits.Limits{CallsPerClient: 1}}).Handler()
	headers := []string{"Mcp-Session-Id", openSession(t, h)}
	var ended sync.WaitGroup
	ended.Go(func() { do(h, post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`), headers...)) })
	<-started
	if w := do(h, post(withSessions, message(withSessions, 2, "tools/list", `{}`), headers...)); w.Code != http.StatusTooManyRequests {
		t.Errorf("second call: %d %s", w.Code, w.Body)
	}
	w := do(h, post(withSessions, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		headers...))
	if w.Code != http.StatusAccepted {
		t.Errorf("cancellation: %d %s", w.Code, w.Body)
	}
	<-stopped
	ended.Wait()
}

func TestLargeMessagesAreRefused(t *testing.T) {
	t.Parallel()
	h := newServer(t, offer(t, nil, "x"), nil, &Options{Limits: limits.Limits{Message: 100}}).Handler()
	for _, version := range versions {
		w := do(h, post(version, message(version, 1, "tools/call", `{"name":"`+strings.Repeat("x", 200)+`"}`)))
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "100 bytes") {
			t.Errorf("%s: %d %s", version, w.Code, w.Body)
		}
	}
}

// TestTenThousandParallelRequests: the limits answer cleanly, what is admitted is served, and nothing stays behind.
func TestTenThousandParallelRequests(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			const limit = 100
			var inside, most atomic.Int64
			gate := make(chan struct{})
			calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) {
				now := inside.Add(1)
				defer inside.Add(-1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				<-gate
				return ok(text("done"))
			})
			s := newServer(t, offer(t, nil, "x"), calls,
				&Options{Limits: limits.Limits{Calls: limit, CallsPerClient: limit, Rate: 1 << 20}})
			h := s.Handler()
			var headers []string
			if version < withoutSessions {
				headers = []string{"Mcp-Session-Id", openSession(t, h)}
			}
			before := runtime.NumGoroutine()

			var served, refused, other atomic.Int64
			var all sync.WaitGroup
			for i := range 10_000 {
				all.Go(func() {
					w := do(h, post(version, message(version, i, "tools/call", `{"name":"x"}`), headers...))
					switch {
					case w.Code == http.StatusOK && strings.Contains(w.Body.String(), "done"):
						served.Add(1)
					case (w.Code == http.StatusTooManyRequests || w.Code == http.StatusServiceUnavailable) &&
						w.Header().Get("Retry-After") != "":
						if refused.Add(1) == 10_000-limit {
							close(gate)
						}
					default:
						other.Add(1)
					}
				})
			}
			all.Wait()
			if served.Load() != limit || refused.Load() != 10_000-limit || most.Load() > limit {
				t.Errorf(
					"%d served, %d refused, %d otherwise, %d at once; want %d served, no more at once, the rest refused",
					served.Load(),
					refused.Load(),
					other.Load(),
					most.Load(),
					limit,
				)
			}
			settle(t, before)
		})
	}
}

// settle waits until there are no more goroutines than before.
func settle(t *testing.T, before int) {
	t.Helper()
	if !testwait.Until(t, func() bool { return runtime.NumGoroutine() <= before }) {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before: %s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
	}
}
