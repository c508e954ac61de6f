package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/guestcode"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
)

// busyGuest keeps the host at work: it reads 2,000 vectors of 50 MB from a sparse file, for ever.
func busyGuest() []byte {
	var vectors []byte
	for range 2000 {
		vectors = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(vectors, 8<<20), 50e6)
	}
	open := guestcode.WASI("path_open", int32(3), int32(0), int32(1024), int32(6), int32(0), int64(1<<1), int64(0),
		int32(0), int32(2048))
	read := guestcode.WASI("fd_pread", int32(5), int32(1<<20), int32(2000), int64(0), int32(2048))
	return guestcode.Calls(64, map[int32][]byte{1024: []byte("sparse"), 1 << 20: vectors}, []guestcode.HostCall{open},
		[]guestcode.HostCall{read})
}

// callingGuest calls the host for ever, to do next to nothing.
func callingGuest() []byte {
	return guestcode.Calls(1, nil, nil, []guestcode.HostCall{guestcode.WASI("sched_yield")})
}

// serveHostile starts a process that serves a guest without limits to speak of, and calls it. No call ends before
// stopping is set. grace is how long the process waits for calls before it ends them.
func serveHostile(t *testing.T, wasm []byte, calls int, grace time.Duration, stopping *atomic.Bool) (process *exec.Cmd, stderr *watched) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to send on Windows")
	}
	dir := t.TempDir()
	description := `name: hostile
version: 1.0.0
description: {en: Never ends.}
permissions:
  files: [{mount: workspace, access: read-only, reason: {en: To read for ever.}}]
tools:
  - {name: hostile_run, description: {en: Never ends.}, inputSchema: {type: object}}
limits: {time: 1h, cpu: 100000000, memory: 64MiB, concurrency: 16}
`
	put(t, filepath.Join(dir, "work", "sparse"), nil)
	if err := os.Truncate(filepath.Join(dir, "work", "sparse"), 1<<40); err != nil {
		testprogram.Missing(t, "no sparse files here: "+err.Error())
	}
	put(t, filepath.Join(dir, "plugins", "hostile.wasm"), wasm)
	put(t, filepath.Join(dir, "plugins", "hostile.yaml"), []byte(description))
	put(t, filepath.Join(dir, "hako.yaml"),
		fmt.Appendf(nil, "plugins: [plugins]\nlimits: {time: 1h, cpu: 100000000}\nshutdown: {grace: %v}\n", grace))
	invoke(t, dir, "plugin", "approve", "hostile", "--yes", "--mount", "workspace="+filepath.Join(dir, "work")).want(t,
		exitOK)

	stderr = new(watched)
	process = exec.CommandContext(t.Context(), program(t), "-C", dir, "serve", "--http", "127.0.0.1:0")
	process.Env = append(os.Environ(), asProgram+"=1")
	process.Stderr = stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	<-stderr.await("Next:")
	url := regexp.MustCompile(`http://[^ ]+/mcp`).FindString(stderr.String())
	var started sync.WaitGroup
	for range calls {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hostile_run","arguments":{},` + meta +
			`}}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method":           "tools/call", "Mcp-Name": "hostile_run",
		} {
			request.Header.Set(name, value)
		}
		sent := sync.OnceFunc(started.Done)
		started.Add(1)
		trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }}
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
		go func() {
			defer sent()
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return
			}
			defer response.Body.Close()
			if answer, err := io.ReadAll(response.Body); err == nil && !stopping.Load() {
				t.Errorf("the call is over: %d %s", response.StatusCode, answer)
			}
		}()
	}
	started.Wait()
	running := func() bool {
		_, got := get(t, strings.TrimSuffix(url, "/mcp")+"/metrics", nil)
		return strings.Contains(got, fmt.Sprintf("hako_calls_in_flight{method=\"tools/call\"} %d\n", calls)) ||
			t.Failed()
	}
	if !testwait.Until(t, running) {
		t.Fatal("not all calls run")
	}
	return process, stderr
}

// TestHostileShutdown stops a process in which guests run that never end, and keep the host at work.
func TestHostileShutdown(t *testing.T) {
	t.Parallel()
	for name, wasm := range map[string][]byte{"guests that read for ever": busyGuest(), "guests that call for ever": callingGuest()} {
		t.Run("SIGTERM: "+name, func(t *testing.T) {
			t.Parallel()
			var stopping atomic.Bool
			process, stderr := serveHostile(t, wasm, 16, time.Second, &stopping)
			stopping.Store(true)
			if err := process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := process.Wait(); strings.Contains(stderr.String(), "without waiting any longer") {
				t.Errorf("it ended at last: %v\n%s", err, stderr)
			}
		})
		t.Run("a second signal: "+name, func(t *testing.T) {
			t.Parallel()
			var stopping atomic.Bool
			process, stderr := serveHostile(t, wasm, 16, time.Hour, &stopping)
			stopping.Store(true)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = process.Wait()
			}()
			// Signals that come before hako has taken the first one are lost.
			testwait.Until(t, func() bool {
				_ = process.Process.Signal(syscall.SIGTERM) // it may have ended
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			<-ended
			status := process.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() && status.ExitStatus() != exitInterrupted ||
				strings.Contains(stderr.String(), "stopped") {
				t.Errorf("it ended by itself: %v\n%s", process.ProcessState, stderr)
			}
		})
	}
	t.Run("something is stuck", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			code := make(chan int, 1)
			var said bytes.Buffer
			a := &app{stderr: &said, exit: func(c int) { code <- c }}
			ctx, stop := context.WithCancel(t.Context())
			defer a.exitIfStuck(ctx, func() time.Duration { return time.Minute })()
			start := time.Now()
			stop()
			if c := <-code; c != exitInterrupted || time.Since(start) != time.Minute+server.CloseTime ||
				!strings.Contains(said.String(), "without waiting any longer") {
				t.Errorf("code %d after %v: %s", c, time.Since(start), &said)
			}
		})
	})
}

// TestGrace: calls may answer for as long as the longest one may take, unless the operator says otherwise.
func TestGrace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"plugin: {probe: {limits: {time: 45s}}}\n": 45 * time.Second,
		"plugin: {probe: {limits: {time: 2s}}}\n":  10 * time.Second,
		"shutdown: {grace: 3s}\n":                  3 * time.Second,
	} {
		source := config.Source{Dir: approved(t, text)}
		s := must(server.New((&app{stderr: io.Discard}).serverOptions(must(config.Load(source)), source, "")))
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Grace(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
