package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// TestFullDatabase fills the disk of the database under load: with its tables, and with its write-ahead log. Calls are
// refused before they are made, the log of hako says why, and when there is room again they succeed, in the same
// process.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (server *postgrestest.Server, disk *postgrestest.Disk, where string){
		"tables": func(t *testing.T) (*postgrestest.Server, *postgrestest.Disk, string) {
			server, disk := postgrestest.NewServer(t), postgrestest.NewDisk(t)
			return server, disk, server.DatabaseOn(t, disk)
		},
		"write-ahead log": func(t *testing.T) (*postgrestest.Server, *postgrestest.Disk, string) {
			disk := postgrestest.NewDisk(t)
			server := postgrestest.NewServerLoggingTo(t, disk)
			return server, disk, server.Database(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, disk, where := open(t)
			dir := over(t, where, "log: {level: debug}\n")
			invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
			s := serve(t, dir)
			c := &fullCalls{t: t, served: s}
			c.until("ok")
			disk.Fill(t)
			if name == "write-ahead log" {
				for range 3 { // of which one has to begin another segment
					_ = server.Try("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000))")
				}
			}
			c.until("the audit log cannot be written, so the call was not made")
			if name == "tables" && !strings.Contains(s.stderr.String(), "free some space on the database's disk") {
				t.Errorf("the log does not say why: %s", s.stderr)
			}
			disk.Free(t)
			if name == "write-ahead log" { // it has ended itself
				server.Kill()
				server.Start(t)
			}
			c.until("ok")
			if code := s.stop(); code != exitOK {
				t.Errorf("hako serve ended with %d: %s", code, s.stderr)
			}
			invoke(t, dir, "audit", "verify").want(t, exitOK, "The log is intact")
			recorded := invoke(t, dir, "audit", "query", "--json", "--type", "tools/call", "--outcome", "ok").stdout
			if n := strings.Count(recorded, "\n"); n < c.answered {
				t.Errorf("%d calls are recorded and %d answered", n, c.answered)
			}
		})
	}
}

// fullCalls makes calls, each of which logs a word of its own when it runs.
type fullCalls struct {
	t        *testing.T
	served   *served
	sent     int
	answered int
}

// until calls until an answer says want. What is refused must not have run.
func (c *fullCalls) until(want string) {
	c.t.Helper()
	for ctx := testwait.Context(c.t); ctx.Err() == nil; c.sent++ {
		word := fmt.Sprintf("word-%d-end", c.sent)
		_, answer := c.served.rpc(c.t, "", "tools/call", "probe_log",
			fmt.Sprintf(`"name":"probe_log","arguments":{"text":%q},`, word))
		ok := strings.Contains(answer, `"isError":false`) || strings.Contains(answer, `"content"`) &&
			!strings.Contains(answer, `"isError":true`)
		ran := strings.Contains(c.served.stderr.String(), word)
		switch {
		case ok:
			c.answered++
		case ran && strings.Contains(answer, "was not made"):
			c.t.Errorf("it says that the call was not made, which it was: %s", answer)
		}
		if want == "ok" && ok || want != "ok" && strings.Contains(answer, want) {
			return
		}
	}
	c.t.Fatalf("never %q: %s", want, c.served.stderr)
}
