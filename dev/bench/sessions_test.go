package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
)

// idleSessions is the number of idle sessions.
const idleSessions = 2000

// sessions measures the heap and stacks of idle sessions, without connections.
func (r *results) sessions(t *testing.T) {
	h, err := host.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	server, err := mcpserver.New(h.Catalog(), h,
		&mcpserver.Options{Limits: limits.Limits{Sessions: idleSessions,
			SessionsPerClient: idleSessions, Rate: 100_000}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	handler := server.Handler()
	before := memory()
	for i := range idleSessions {
		openSession(t, handler, i)
	}
	r.add(t, "idle_sessions_2000_mib", (memory()-before)/(1<<20), "MiB")
}

// memory returns the size of the heap and of goroutine stacks.
func memory() float64 {
	runtime.GC()
	runtime.GC() // the first one keeps the content of pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

func openSession(t *testing.T, handler http.Handler, number int) {
	t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client %d","version":"1"}}}`
	send := func(body, session string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, mcpserver.Path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	w := send(fmt.Sprintf(initialize, number), "")
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, id); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// TestIdleSessions runs only this benchmark.
func TestIdleSessions(t *testing.T) {
	var r results
	r.sessions(t)
	if mib := r[0].Value; mib > 100 {
		t.Errorf("%d idle sessions take %.0f MiB", idleSessions, mib)
	}
}
