package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
)

const withBatching = "2025-03-26"

// calls is a batch of n tool calls, whose IDs begin at first.
func calls(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = message(withBatching, first+i, "tools/call", `{"name":"x"}`)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestHostileBatches: a message in a batch is worth no less than one alone.
func TestHostileBatches(t *testing.T) {
	t.Parallel()
	// rig is a server with a session of a version, and counts what is called. Calls wait while gate is not nil and
	// open.
	type rig struct {
		*sessionClient
		s      *Server
		id     string
		called atomic.Int64
		gate   chan struct{}
	}
	within := func(name, version string, bounds limits.Limits, attack func(t *testing.T, r *rig)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := new(rig)
				r.s = newServer(t, offer(t, nil, "x"),
					caller(func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
						r.called.Add(1)
						if r.gate != nil {
							select {
							case <-r.gate:
							case <-ctx.Done():
								return nil, ctx.Err()
							}
						}
						return ok(text("done"))
					}), &Options{Limits: bounds})
				r.sessionClient = &sessionClient{t: t, h: r.s.Handler()}
				r.id = openSession(t, r.h)
				if version != "" {
					w := r.do(post(version, initialize(version)))
					r.id = w.Header().Get("Mcp-Session-Id")
					r.do(post(version, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id",
						r.id))
				}
				time.Sleep(time.Hour) // the burst is whole again; the session is idle
				attack(t, r)
				r.s.Close()
				synctest.Wait()
			})
		})
	}
	// send sends a body in the session, without the header of the version, as clients of its time do.
	send := func(r *rig, body string, headers ...string) (int, string) {
		w := r.do(post(withBatching, body, append([]string{"Mcp-Session-Id", r.id, "Mcp-Protocol-Version", ""},
			headers...)...))
		return w.Code, w.Body.String()
	}
	idle := limits.Limits{SessionIdle: 24 * time.Hour, Rate: 1 << 20}
	limited := func(change func(*limits.Limits)) limits.Limits {
		l := idle
		change(&l)
		return l
	}

	within("each answers", withBatching, idle, func(t *testing.T, r *rig) {
		code, body := send(r, calls(1, 3))
		if code != http.StatusOK || strings.Count(body, "done") != 3 || r.s.Load().Requests != 0 {
			t.Errorf("%d %s", code, body)
		}
	})
	within("each counts against the rate", withBatching, limited(func(l *limits.Limits) { l.Rate, l.Burst = 1, 10 }),
		func(t *testing.T, r *rig) {
			if code, body := send(r, calls(1, 8)); code != http.StatusOK {
				t.Errorf("%d %s", code, body)
			}
			code, body := send(r, calls(1, 8))
			if code != http.StatusTooManyRequests || !strings.Contains(body, "the limit is 1 a second") ||
				r.called.Load() != 8 {
				t.Errorf("%d called: %d %s", r.called.Load(), code, body)
			}
			time.Sleep(2 * time.Second)
			if code, _ := send(r, calls(1, 1)); code != http.StatusOK {
				t.Errorf("a refused batch has used the rate up: %d", code)
			}
		})
	within("more than a burst never passes", withBatching, limited(func(l *limits.Limits) { l.Rate, l.Burst = 1, 10 }),
		func(t *testing.T, r *rig) {
			code, body := send(r, calls(1, 50))
			if code != http.StatusTooManyRequests || !strings.Contains(body, "send fewer") || r.called.Load() != 0 {
				t.Errorf("%d called: %d %s", r.called.Load(), code, body)
			}
		})
	within("notifications count against the rate too", withBatching,
		limited(func(l *limits.Limits) { l.Rate, l.Burst = 1, 10 }), func(t *testing.T, r *rig) {
			note := `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
			if code, body := send(r, "["+strings.Repeat(note+",", 40)+note+"]"); code != http.StatusTooManyRequests {
				t.Errorf("%d %s", code, body)
			}
		})
	within("each counts as in flight", withBatching, limited(func(l *limits.Limits) { l.CallsPerClient = 3 }),
		func(t *testing.T, r *rig) {
			code, body := send(r, calls(1, 4))
			if code != http.StatusTooManyRequests || !strings.Contains(body, "the batch has 4 requests") ||
				r.called.Load() != 0 {
				t.Errorf("%d called: %d %s", r.called.Load(), code, body)
			}
			r.gate = make(chan struct{})
			codes := make(chan int, 1)
			go func() { code, _ := send(r, calls(1, 3)); codes <- code }()
			synctest.Wait()
			if load := r.s.Load().Requests; load != 3 {
				t.Errorf("%d in flight", load)
			}
			if code, body := send(r, message(withBatching, 9, "tools/list", `{}`)); code != http.StatusTooManyRequests {
				t.Errorf("one more: %d %s", code, body)
			}
			close(r.gate)
			if code := <-codes; code != http.StatusOK || r.called.Load() != 3 || r.s.Load().Requests != 0 {
				t.Errorf("%d, %d called, %d in flight", code, r.called.Load(), r.s.Load().Requests)
			}
		})
	within("all clients' limit holds", withBatching, limited(func(l *limits.Limits) { l.Calls = 5 }),
		func(t *testing.T, r *rig) {
			if code, body := send(r, calls(1, 6)); code != http.StatusServiceUnavailable || r.called.Load() != 0 {
				t.Errorf("%d %s", code, body)
			}
		})
	within("cancellations pass when no call does", withBatching,
		limited(func(l *limits.Limits) { l.CallsPerClient = 1 }),
		func(t *testing.T, r *rig) {
			r.gate = make(chan struct{})
			codes := make(chan int, 1)
			go func() { code, _ := send(r, calls(7, 1)); codes <- code }()
			synctest.Wait()
			cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
			if code, body := send(r, "["+cancel+","+cancel+"]"); code != http.StatusAccepted {
				t.Errorf("%d %s", code, body)
			}
			<-codes
			if r.s.Load().Requests != 0 {
				t.Error("the call goes on")
			}
		})
	within("a cancellation beside a request", withBatching, idle, func(t *testing.T, r *rig) {
		r.gate = make(chan struct{})
		codes := make(chan int, 1)
		go func() {
			code, _ := send(r, message(withBatching, 7, "tools/call", `{"name":"x"}`)) // alone, and so not the SDK's
			codes <- code
		}()
		synctest.Wait()
		code, body := send(r, `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}},{"jsonrpc":"2.0","id":8,"method":"ping"}]`)
		if code != http.StatusOK || !strings.Contains(body, `"id":8`) {
			t.Errorf("%d %s", code, body)
		}
		<-codes
	})

	ping := `{"jsonrpc":"2.0","id":%v,"method":"ping"}`
	for name, test := range map[string]struct{ body, want string }{
		"too many messages": {calls(1, transport.MaxBatch+1),
			"it has more than 100 messages: send fewer at once"},
		"very many values":         {"[" + strings.Repeat("1,", 500_000) + "1]", "part 1 is not a JSON-RPC 2.0 message"},
		"nothing":                  {"[]", "it is empty"},
		"nothing but space":        {" \n[ ]\t", "it is empty"},
		"a batch in a batch":       {"[" + calls(1, 2) + "]", "part 1 is not a JSON-RPC 2.0 message"},
		"a number":                 {"[" + fmt.Sprintf(ping, 1) + ",7]", "part 2 is not a JSON-RPC 2.0 message"},
		"null":                     {"[null]", "part 1 is not a JSON-RPC 2.0 message"},
		"a message without a kind": {`[{"jsonrpc":"2.0"}]`, "part 1 is not a JSON-RPC 2.0 message"},
		"JSON-RPC 1":               {`[{"id":1,"method":"ping"}]`, "part 1 is not a JSON-RPC 2.0 message"},
		"one ID twice": {"[" + fmt.Sprintf(ping, 1) + "," + fmt.Sprintf(ping, 1) + "]",
			"the id of part 2 is that of an earlier one"},
		"one ID in two forms": {"[" + fmt.Sprintf(ping, "1") + "," + fmt.Sprintf(ping, "1.0") + "]",
			"the id of part 2 "},
		"one ID with an exponent": {"[" + fmt.Sprintf(ping, "10") + "," + fmt.Sprintf(ping, "1e1") + "]", "the id of part 2 "},
		"zero and minus zero":     {"[" + fmt.Sprintf(ping, "0") + "," + fmt.Sprintf(ping, "-0") + "]", "the id of part 2 "},
		"100,000 batches in each other": {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
			"exceeded max depth"},
		"an ID that is a list":  {"[" + fmt.Sprintf(ping, "[1]") + "]", "part 1 is not a JSON-RPC 2.0 message"},
		"a batch after another": {"[" + fmt.Sprintf(ping, 1) + "][" + fmt.Sprintf(ping, 2) + "]", ""},
		"one text twice": {"[" + fmt.Sprintf(ping, `"a"`) + "," + fmt.Sprintf(ping, `"\u0061"`) + "]",
			"the id of part 2 "},
		"initialize": {"[" + initialize(withBatching) + "]",
			`part 1 is \"initialize\", which must be sent alone`},
		"a stream": {`[{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}]`,
			"which must be sent alone"},
		"a key twice": {`[{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}]`, `has the duplicate key \"id\"`},
		"cut off":     {"[" + fmt.Sprintf(ping, 1), "it ends early"},
	} {
		within("refused: "+name, withBatching, idle, func(t *testing.T, r *rig) {
			code, body := send(r, test.body)
			if code != http.StatusBadRequest || !strings.Contains(body, test.want) ||
				strings.Contains(body, "unmarshal") || r.called.Load() != 0 {
				t.Errorf("%d called: %d %.300s", r.called.Load(), code, body)
			}
		})
	}
	within("a batch is one message in bytes", withBatching, limited(func(l *limits.Limits) { l.Message = 1000 }),
		func(t *testing.T, r *rig) {
			if code, body := send(r, calls(1, 90)); code != http.StatusRequestEntityTooLarge || r.called.Load() != 0 {
				t.Errorf("%d %s", code, body)
			}
		})
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		for name, header := range map[string]string{"its own header": version, "an older header": withBatching, "no header": ""} {
			within("refused in "+version+" with "+name, version, idle, func(t *testing.T, r *rig) {
				code, body := send(r, calls(1, 2), "Mcp-Protocol-Version", header)
				if code != http.StatusBadRequest || !strings.Contains(body, "up to version 2025-03-26 only") ||
					r.called.Load() != 0 {
					t.Errorf("%d %s", code, body)
				}
			})
		}
	}
	within("refused in 2026-07-28", "", idle, func(t *testing.T, r *rig) {
		w := r.do(post(withoutSessions, "["+message(withoutSessions, 1, "tools/call", `{"name":"x"}`)+"]", "Mcp-Method",
			"tools/call", "Mcp-Name", "x"))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "up to version 2025-03-26 only") ||
			r.called.Load() != 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	within("refused without a session", withBatching, idle, func(t *testing.T, r *rig) {
		r.id = ""
		if code, body := send(r, calls(1, 2)); code != http.StatusBadRequest || !strings.Contains(body, "initialize") ||
			r.called.Load() != 0 {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("refused over stdio", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		s := newServer(t, offer(t, serveEverything, "x"), nil, nil)
		if err := s.ServeStdio(t.Context(), io.MultiReader(strings.NewReader(calls(1, 2)+"\n")), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "batches are not supported") {
			t.Errorf("%s", &out)
		}
	})
}
