//go:build unix

package bench

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/mcpload"
)

// loadedServer is a server that has been under load until a time.
type loadedServer struct {
	*served
	until time.Time
}

// rest measures a program that has nothing to do: the resident memory of a server that starts with cached code, before
// any call and after some, and one command with a call. The server runs until the end of the benchmark t, so that kept
// can measure it again.
func (r *results) rest(t *testing.T) *loadedServer {
	if *program == "" || runtime.GOOS != "linux" {
		return nil
	}
	info, err := os.Stat(*program)
	if err != nil {
		t.Fatal(err)
	}
	r.add(t, "binary_mb", float64(info.Size())/1e6, "MB")

	site := newSite(t, 0)
	first := site.serve(t)
	time.Sleep(*settle) // all plugins are compiled
	first.stop()
	s := site.serve(t)
	time.Sleep(*settle)
	r.add(t, "rest_rss_mib", s.resident(t), "MiB")
	r.add(t, "rest_private_mib", s.private(t), "MiB")

	load := make([]*mcpload.Client, 64)
	for i := range load {
		load[i] = connect(t, s.url, protocolVersions[1])
	}
	results := make(chan error, len(load))
	for begin := time.Now(); time.Since(begin) < *duration; {
		for _, c := range load {
			go func() { results <- c.Call(t.Context(), "file_list", c.Body("file_list", `{}`), "") }()
		}
		for range load {
			err = errors.Join(err, <-results)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.add(t, "after_load_rss_mib", s.resident(t), "MiB")
	loaded := &loadedServer{s, time.Now()}

	fastest, least := time.Hour, math.Inf(1)
	for range 10 {
		command, begin := site.command("call", "file_list", "{}"), time.Now()
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		fastest = min(fastest, time.Since(begin))
		least = min(least, peakOf(t, site.command("call", "file_list", "{}")))
	}
	r.add(t, "cli_call_ms", float64(fastest.Microseconds())/1e3, "ms")
	r.add(t, "cli_call_rss_mib", least, "MiB")
	return loaded
}

// peakOf runs a command and returns its highest resident memory in MiB, read every half millisecond. The kernel's own
// answer at its end (Rusage.Maxrss) is at least the memory that this process had when it started the command.
func peakOf(t *testing.T, command *exec.Cmd) (mib float64) {
	t.Helper()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return mib
		case <-time.After(500 * time.Microsecond):
			now, _ := status(command.Process.Pid, "status", "VmHWM") // fails at the end
			mib = max(mib, now)
		}
	}
}

// afterLoad is the pause between the load and the second measurement of a server's memory.
const afterLoad = time.Minute

// kept measures the memory that a server keeps a minute after the load, and then after large requests. Other benchmarks
// may run in the meantime.
func (r *results) kept(t *testing.T, s *loadedServer) {
	if s == nil {
		return
	}
	time.Sleep(time.Until(s.until.Add(afterLoad)))
	r.add(t, "after_load_kept_rss_mib", s.resident(t), "MiB")
	r.largeRequests(t, s.served)
	s.stop()
}

const (
	// largeRequests is the number of large requests: more than the console lists (200).
	largeRequests = 270
	// largeArguments is the size of their arguments, in bytes: a little less than the default of limits.input.
	largeArguments = 3_900_000
)

// largeRequests measures the memory that a server keeps of calls with large arguments, and small results, some time
// after the last one.
func (r *results) largeRequests(t *testing.T, s *served) {
	t.Helper()
	c := connect(t, s.url, protocolVersions[1])
	body := c.Body("file_write", `{"path":"written.txt","overwrite":true,"content":"`+strings.Repeat("x", largeArguments)+`"}`)
	for range largeRequests {
		if err := c.Call(t.Context(), "file_write", body, "Wrote 3900000 bytes"); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(*settle)
	r.add(t, "after_large_requests_rss_mib", s.resident(t), "MiB")
}

// TestRest runs only these benchmarks.
func TestRest(t *testing.T) {
	if *program == "" || runtime.GOOS != "linux" {
		t.Skip("it needs -hako.program and Linux")
	}
	var r results
	r.kept(t, r.rest(t))
}
