package bench

import (
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
)

// growSessions measures idle sessions without connections: the time to open one, the heap and stacks of all, and the
// time of a request in one of them.
func (r *results) growSessions(t *testing.T) {
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		h, err := host.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		server, err := mcpserver.New(h.Catalog(), h, &mcpserver.Options{Limits: limits.Limits{
			Sessions: n + 2, SessionsPerClient: n + 2, Rate: 1_000_000}})
		if err != nil {
			t.Fatal(err)
		}
		handler := server.Handler()
		openSession(t, handler, 0) // the first one of a process costs more
		before, opened := memory(), 0
		took := perRun(t, n, func() error {
			opened++
			openSession(t, handler, opened)
			return nil
		})
		r.addPoint(t, "sessions", n, "open_us", us(took), "us")
		r.addPoint(t, "sessions", n, "mib", (memory()-before)/(1<<20), "MiB")
		client := connect(t, serve(t, handler)+"/mcp", protocolVersions[0])
		r.addPoint(t, "sessions", n, "list_us", us(perRun(t, samples, func() error { list(t, client, 0); return nil })), "us")
		_ = server.Close()
		_ = h.Close()
	}
}
