package mcpserver

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/pipeline"
)

// TestCallerInRecords: what records say of a caller is the same, whichever way a call takes, and bounded.
func TestCallerInRecords(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	const parent = "00-" + trace + "-b7ad6b7169203331-01"
	seen := make(chan pipeline.Caller, 1)
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		seen <- call.Caller
		return ok(text("done"))
	})
	s := newServer(t, offer(t, nil, "x"), calls, nil)
	h := s.Handler()
	session := openSession(t, h)
	for _, version := range versions {
		for _, way := range []string{"directly", "by the SDK"} {
			for _, place := range []string{"header", "_meta"} {
				body := message(version, 7, "tools/call", `{"name":"x","_meta":{}}`)
				if version == withoutSessions {
					body = message(version, 7, "tools/call", `{"name":"x"}`)
				}
				meta := ""
				headers := []string{"Mcp-Session-Id", session}
				if version == withoutSessions {
					headers = nil
				}
				if place == "_meta" {
					meta = `"traceparent":"` + parent + `","tracestate":"vendor=1",`
				} else {
					headers = append(headers, "Traceparent", parent, "Tracestate", "vendor=1")
				}
				if way == "by the SDK" {
					meta += `"progressToken":1,`
				}
				body = strings.Replace(strings.Replace(body, `"_meta":{`, `"_meta":{`+meta, 1), ",}}}", "}}}", 1)
				do(h, post(version, body, headers...))
				select {
				case got := <-seen:
					if got.RequestID != "7" || got.TraceID != trace || got.Trace.Parent != parent ||
						got.Trace.State != "vendor=1" || got.Client != "test" || got.ClientVersion != "1" ||
						got.Address != "192.0.2.1" {
						t.Errorf("%s, %s, in %s: %+v", version, way, place, got)
					}
				default:
					t.Errorf("%s, %s, in %s: no call for %s", version, way, place, body)
				}
			}
		}
	}
}

// TestCallerBehindProxy: records and limits go by the client where a proxy is trusted, and by the proxy where it is
// not.
func TestCallerBehindProxy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trusted []string
		want    string
		second  int
	}{
		{nil, "192.0.2.1", http.StatusTooManyRequests},
		{[]string{"192.0.2.0/24"}, "198.51.100.9", http.StatusOK},
	} {
		seen := make(chan pipeline.Caller, 1)
		calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			seen <- call.Caller
			return ok(text("done"))
		})
		h := newServer(t, offer(t, nil, "x"), calls,
			&Options{TrustedProxies: test.trusted, Limits: limits.Limits{Rate: 1, Burst: 1}}).Handler()
		body := message(withoutSessions, 1, "tools/call", `{"name":"x"}`)
		do(h, post(withoutSessions, body, "X-Forwarded-For", "127.0.0.1, 198.51.100.9"))
		if got := (<-seen).Address; got != test.want {
			t.Errorf("trusted %q: the address is %s, want %s", test.trusted, got, test.want)
		}
		if w := do(h, post(withoutSessions, body, "X-Forwarded-For", "198.51.100.10")); w.Code != test.second {
			t.Errorf("trusted %q: %d for another client, want %d", test.trusted, w.Code, test.second)
		}
	}
}

func TestTraceID(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	for parent, want := range map[string]string{
		"00-" + id + "-b7ad6b7169203331-01":      id,
		"01-" + id + "-b7ad6b7169203331-01-more": id,
		"":                                       "",
		id:                                       "",
		"ff-" + id + "-b7ad6b7169203331-01":      "",
		"00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01":          "",
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01":      "",
		"00-" + strings.Repeat("x", 32) + "-b7ad6b7169203331-01":      "",
		"00-" + id + "-b7ad6b7169203331-01" + strings.Repeat("-", 99): "",
	} {
		if got := traceID(parent); got != want {
			t.Errorf("%q: %q", parent, got)
		}
	}
}
