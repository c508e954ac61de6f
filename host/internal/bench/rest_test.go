//go:build unix

package bench

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// rest measures a program that has nothing to do: the resident memory of a server that starts with cached code, before
// any call and after some, and one command with a call.
func (r *results) rest(t *testing.T) {
	if *program == "" || runtime.GOOS != "linux" {
		t.Skip("it needs -hako.program and Linux")
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

	load := make([]*client, 64)
	for i := range load {
		load[i] = connect(t, s.url, protocolVersions[1])
	}
	results := make(chan error, len(load))
	for begin := time.Now(); time.Since(begin) < *duration; {
		for _, c := range load {
			go func() { results <- c.call(t.Context(), "file_list", c.body("file_list", `{}`), "") }()
		}
		for range load {
			err = errors.Join(err, <-results)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.add(t, "after_load_rss_mib", s.resident(t), "MiB")
	time.Sleep(*settle)
	r.add(t, "after_load_kept_rss_mib", s.resident(t), "MiB")
	s.stop()

	fastest, least := time.Hour, int64(1<<62)
	for range 10 {
		command, begin := site.command("call", "file_list", "{}"), time.Now()
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		fastest = min(fastest, time.Since(begin))
		least = min(least, command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	r.add(t, "cli_call_ms", float64(fastest.Microseconds())/1e3, "ms")
	r.add(t, "cli_call_rss_mib", float64(least)/1024, "MiB")
}

// TestRest runs only this benchmark.
func TestRest(t *testing.T) {
	var r results
	r.rest(t)
}
