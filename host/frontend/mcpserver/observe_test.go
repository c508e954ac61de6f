package mcpserver

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// tally counts what an Observer is told.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (o *tally) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[string]int{}
	}
	o.count[what]++
}

func (o *tally) RequestAnswered(mode, method string, _ time.Duration) { o.add(mode + " " + method) }
func (o *tally) RequestRefused(reason string)                         { o.add(reason) }

// TestObserver sends requests of both versions, and some that are refused: each is counted once, with words of the
// fixed sets.
func TestObserver(t *testing.T) {
	t.Parallel()
	seen := new(tally)
	calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) { return ok(new(abi.Response)) })
	s := newServer(t, offer(t, nil, "echo"), calls, &Options{Observer: seen, Limits: limits.Limits{Message: 1000}})
	h := s.Handler()
	call := func(version string) string {
		return message(version, 1, "tools/call", `{"name":"echo","arguments":{}}`)
	}
	session := openSession(t, h)
	do(h, post(versions[0], call(versions[0]), "Mcp-Session-Id", session))
	do(h, post(withoutSessions, call(withoutSessions)))
	do(h, aside(post(withoutSessions, call(withoutSessions))))
	do(h, post(withoutSessions, message(withoutSessions, 1, "made/up", `{}`)))
	do(h, post(withoutSessions, "{"))
	do(h, post(withoutSessions, strings.Repeat(" ", 1001)))
	do(h, post(withoutSessions, call(withoutSessions), "Origin", "https://elsewhere.example"))
	foreign := post(withoutSessions, call(withoutSessions))
	foreign.Host = "elsewhere.example"
	do(h, foreign)
	if load := s.Load(); load.Sessions != 1 || load.Requests != 0 {
		t.Errorf("load %+v", load)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if w := do(h, post(withoutSessions, call(withoutSessions))); w.Code != http.StatusServiceUnavailable {
		t.Errorf("while shutting down: %d", w.Code)
	}
	for what, want := range map[string]int{
		"session initialize": 1, "session tools/call": 1, "stateless tools/call": 2, "stateless other": 1,
		refusedInvalid: 1, refusedSize: 1, refusedOrigin: 1, refusedHost: 1, refusedDraining: 1, refusedAuth: 0,
	} {
		if seen.count[what] != want {
			t.Errorf("%s: %d, want %d", what, seen.count[what], want)
		}
	}
}
