//go:build linux

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/internal/process"
)

// The environment variable asHost makes the test binary start itself as a program and wait; asProgram makes it run as
// the program that its value names.
const (
	asHost    = "HAKO_TEST_HOST"
	asProgram = "HAKO_TEST_PROGRAM"
	secret    = "HAKO_TEST_SECRET=hunter2"
)

func TestMain(m *testing.M) {
	process.Main()
	switch {
	case os.Getenv(asProgram) != "":
		program(os.Getenv(asProgram))
	case os.Getenv(asHost) != "":
		host(os.Getenv(asHost))
	default:
		os.Exit(m.Run())
	}
}

// host starts a program like hako and forwards its output.
func host(kind string) {
	if err := process.Seal(); err != nil {
		panic(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = []string{asProgram + "=" + kind, "PATH=" + os.Getenv("PATH")}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	lifeline, err := process.Start(command)
	if err != nil {
		fmt.Println("not started:", err)
		return
	}
	defer lifeline.Close()
	fmt.Println("ended:", command.Wait())
	if kind == "quits" {
		time.Sleep(time.Minute)
	}
}

// program runs one of several kinds of upstream servers.
func program(kind string) {
	grandchild := func(attributes *syscall.SysProcAttr, args ...string) *exec.Cmd {
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = attributes
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println("pid", c.Process.Pid)
		return c
	}
	switch kind {
	case "environ", "mem", "maps", "auxv":
		supervisor := os.Getppid()
		parent := parentOf(supervisor)
		for _, file := range []string{kind, "task/" + fmt.Sprint(parent) + "/" + kind,
			"root/proc/" + fmt.Sprint(parent) + "/" + kind} {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", parent, file))
			fmt.Printf("read %s: %d bytes, %v, %v\n", kind, len(data), strings.Contains(string(data), "hunter2"), err)
		}
	case "ptrace":
		fmt.Println("read ptrace: 0 bytes, false,", syscall.PtraceAttach(parentOf(os.Getppid())))
	case "fails":
		os.Exit(3)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "child":
		grandchild(nil, "sleep", "1000")
	case "session":
		grandchild(&syscall.SysProcAttr{Setsid: true}, "sleep", "1000")
	case "daemon": // a process whose parent has ended
		shell := grandchild(&syscall.SysProcAttr{Setsid: true}, "sh", "-c", "(setsid sleep 1000 & echo pid $!) ; exit")
		if err := shell.Wait(); err != nil {
			panic(err)
		}
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		grandchild(&syscall.SysProcAttr{Setpgid: true}, "sh", "-c",
			"trap '' TERM HUP INT; echo pid $$; exec sleep 1000")
	case "quits":
		grandchild(&syscall.SysProcAttr{Setsid: true}, "sleep", "1000")
		return
	}
	fmt.Println("pid", os.Getpid())
	fmt.Println("ready")
	if kind != "environ" && kind != "mem" && kind != "maps" && kind != "auxv" && kind != "ptrace" {
		time.Sleep(time.Hour)
	}
}

func parentOf(pid int) (parent int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(data), ") ")
	var state string
	_, _ = fmt.Sscan(after, &state, &parent)
	return parent
}

// startHost runs the test binary as a host until the program prints ready or the host ends. It returns the output and
// the process IDs.
func startHost(t *testing.T, binary, kind string, user *syscall.Credential) (c *exec.Cmd,
	printed []string, pids []int) {
	t.Helper()
	c = exec.Command(binary)
	c.Dir = "/"
	c.Env = []string{asHost + "=" + kind, secret, "PATH=" + os.Getenv("PATH")}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line, pid := lines.Text(), 0
		if n, _ := fmt.Sscanf(line, "pid %d", &pid); n == 1 {
			pids = append(pids, pid)
		}
		if printed = append(printed, line); line == "ready" || strings.HasPrefix(line, "ended") && kind == "quits" {
			go io.Copy(io.Discard, out)
			break
		}
	}
	return c, printed, pids
}

// running reports whether a process exists and is no zombie.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if !testwait.Until(t, func() bool { return !running(pid) }) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// TestHostileUpstreamOutlives: when hako is killed, all processes that an upstream program has started end, however
// they hide.
func TestHostileUpstreamOutlives(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"alone", "child", "session", "daemon", "deaf", "quits"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c, printed, pids := startHost(t, os.Args[0], kind, nil)
			if len(pids) == 0 {
				t.Fatalf("printed %q", printed)
			}
			if kind != "quits" { // the program has exited by itself, and its descendants must end too
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			gone(t, pids)
		})
	}
}

// TestHostileUpstreamReads: a program of the same user cannot read the environment and the memory of hako.
func TestHostileUpstreamReads(t *testing.T) {
	t.Parallel()
	var user *syscall.Credential
	if os.Getuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	// The other user must be able to reach the test binary.
	dir, err := os.MkdirTemp("", "hako-process")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "host")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(binary, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"environ", "mem", "maps", "auxv", "ptrace"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, printed, _ := startHost(t, binary, kind, user)
			if text := strings.Join(printed, "\n"); !strings.Contains(text, "read "+kind) ||
				strings.Contains(text, "true") || strings.Contains(text, "<nil>") {
				t.Errorf("the program printed %s", text)
			}
		})
	}
}

// TestStartGroup: the end of the context, or closing the group, kills the program with its children.
func TestStartGroup(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"the context ends", "the group is closed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			command := exec.CommandContext(ctx, "sh", "-c", "sleep 1000 & echo $!; wait")
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			group, err := process.StartGroup(command)
			if err != nil {
				t.Fatal(err)
			}
			pid := 0
			if _, err := fmt.Fscan(out, &pid); err != nil {
				t.Fatal(err)
			}
			if how == "the context ends" {
				cancel()
			} else if err := group.Close(); err != nil {
				t.Error(err)
			}
			if err := command.Wait(); err == nil {
				t.Error("it ended by itself")
			}
			gone(t, []int{pid})
			if err := group.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := process.StartGroup(exec.Command("/etc/passwd")); err == nil {
		t.Error("what cannot be started was started")
	}
}

// TestStatus: the supervisor exits with the program's status, and reports why a program does not start.
func TestStatus(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"fails": "ended: exit status 3", "killed": "ended: exit status 137"} {
		if _, printed, _ := startHost(t, os.Args[0], kind, nil); len(printed) == 0 || printed[0] != want {
			t.Errorf("%s: %q", kind, printed)
		}
	}
	command := exec.Command("/etc/passwd")
	if _, err := process.Start(command); err == nil || err.Error() != "permission denied" {
		t.Errorf("got %v", err)
	}
}
