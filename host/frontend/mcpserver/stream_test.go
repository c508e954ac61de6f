package mcpserver

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestStreamsStayAlive: a subscription and a session's stream get comments while nothing happens, and proxies are told
// not to buffer.
func TestStreamsStayAlive(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, offer(t, nil, "x"), nil, &Options{KeepAlive: time.Second})
				h := s.Handler()
				body := message(version, 1, transport.MethodListen, `{"notifications":{"toolsListChanged":true}}`)
				r := post(version, body)
				if version < withoutSessions {
					r = post(version, "", "Mcp-Session-Id", openSession(t, h))
					r.Method = http.MethodGet
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
				defer cancel()
				w := do(h, r.WithContext(ctx))
				if n := strings.Count(w.Body.String(), ": keep-alive\n\n"); n != 3 {
					t.Errorf("%d comments in 3.5s, want 3: %s", n, w.Body)
				}
				if got := w.Header().Get("X-Accel-Buffering"); got != "no" {
					t.Errorf("X-Accel-Buffering: %q, want no", got)
				}
				time.Sleep(time.Minute)
				if strings.Count(w.Body.String(), ": keep-alive\n\n") != 3 {
					t.Error("comments after the stream has ended")
				}
			})
		})
	}
}

// TestErrorAfterProgress: the SDK answers errors with a bare JSON body, which is none of an event stream that has
// begun.
func TestErrorAfterProgress(t *testing.T) {
	t.Parallel()
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		call.Progress(abi.Progress{Progress: 1})
		return nil, &pipeline.NotFoundError{Kind: "tool", Name: "x"}
	})
	body := strings.Replace(message(withoutSessions, 1, "tools/call", `{"name":"x"}`), `"_meta":{`,
		`"_meta":{"progressToken":1,`, 1)
	w := do(newServer(t, offer(t, nil, "x"), calls, nil).Handler(), post(withoutSessions, body))
	events := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
	if len(events) != 2 || !strings.HasPrefix(events[1], "event: message\ndata: {") {
		t.Fatalf("body: %s", w.Body)
	}
	if answer := answerOf(t, w); answer.Error == nil || answer.Error.Code != -32602 {
		t.Errorf("answer: %s", w.Body)
	}
}
