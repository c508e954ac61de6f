//go:build unix

package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// TestKilledUnderLoad: a server that is killed again and again while many call it costs those calls, and leaves no
// process behind.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, child("plain", "plain"))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var mu sync.Mutex
	good, bad := 0, 0
	for i := range 16 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				want := fmt.Sprintf("%d-%d", i, n)
				result, err := r.pipeline.Call(t.Context(), &pipeline.Call{Request: abi.Request{
					Method: abi.CallTool, Name: "plain_echo", Arguments: []byte(`{"text":"` + want + `"}`),
				}})
				mu.Lock()
				switch {
				case err != nil:
					t.Errorf("a protocol error: %v", err)
				case result.Response.IsError:
					bad++
				case text(result) != want:
					t.Errorf("got the answer of another call: %q, not %q", text(result), want)
				default:
					good++
				}
				mu.Unlock()
			}
		})
	}
	var pids []int
	for range 3 {
		pid, err := strconv.Atoi(text(r.call("plain_pid", "{}")))
		if err != nil {
			continue // it died
		}
		pids = append(pids, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		r.eventually("the next one", func() bool {
			return text(r.call("plain_pid", "{}")) != strconv.Itoa(pid) && r.status("plain").State == mcpclient.Up
		})
	}
	stop()
	group.Wait()
	if good == 0 {
		t.Error("no call was answered")
	}
	t.Logf("%d calls answered, %d failed, processes %v", good, bad, pids)
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is still there, or a zombie", pid)
		}
	}
}

// alive reports whether there is such a process, zombies included.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestCloseEndsTheGroup: a program that does not want to end is killed with all that it has started.
func TestCloseEndsTheGroup(t *testing.T) {
	t.Parallel()
	spec := child("stubborn", "stubborn")
	spec.ProtocolVersion = "2025-11-25"
	r := newRig(t, spec)
	var server, grandchild int
	if _, err := fmt.Sscan(text(r.call("stubborn_x", "{}")), &server, &grandchild); err != nil {
		t.Fatal(err)
	}
	if err := r.upstreams.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(server) {
		t.Errorf("the program %d is still there", server)
	}
	r.eventually("its child to be reaped", func() bool { return !running(grandchild) })
	if len(r.tools()) != 0 || len(r.upstreams.Status()) != 0 {
		t.Errorf("left over: %v %v", r.tools(), r.upstreams.Status())
	}
	if err := r.upstreams.Apply(nil); err == nil {
		t.Error("closed upstreams take servers")
	}
}

// TestDeathEndsTheGroup: what a program has started ends when it is killed.
func TestDeathEndsTheGroup(t *testing.T) {
	t.Parallel()
	spec := child("stubborn", "stubborn")
	spec.ProtocolVersion = "2025-11-25"
	r := newRig(t, spec)
	var server, grandchild int
	if _, err := fmt.Sscan(text(r.call("stubborn_x", "{}")), &server, &grandchild); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.eventually("its child to be gone", func() bool { return !running(grandchild) })
}

// running reports whether a process runs: one whose parent has gone waits as a zombie for the system's first process.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && alive(pid)
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(after, "Z")
}
