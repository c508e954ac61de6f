//go:build unix

package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// accounts are tried in this order if the tests run as root, because PostgreSQL refuses to run as root.
var accounts = []string{"postgres", "nobody"}

// credential returns the account of the server; nil means the account of the tests.
func credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range accounts {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
}

// giveAway changes the owner of a directory to the server's account.
func giveAway(dir string) error {
	c := credential()
	if c == nil {
		return nil
	}
	return os.Chown(dir, int(c.Uid), int(c.Gid))
}

// asServer returns a command that runs as the server's account, in its own process group.
func asServer(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential(), Setpgid: true}
	command.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	return command
}

// keeper is a shell that runs the server and stops it when this process ends in any way, which closes the shell's
// standard input.
type keeper struct {
	input   io.Closer
	command *exec.Cmd
}

const (
	keep   = `dir=$1; shift; "$@" >>"$dir/log" 2>&1 & server=$!; cat; kill -QUIT $server 2>/dev/null; wait $server`
	remove = `; rm -rf "$dir"`
	// Background processes of a shell ignore SIGQUIT. PostgreSQL installs its own handler, PgBouncer does not.
	keepPooler = `dir=$1; shift; "$@" >>"$dir/log" 2>&1 & pooler=$!; cat; kill -KILL $pooler 2>/dev/null; wait $pooler` + remove
)

func (s *Server) keep(andRemove bool) (err error) {
	script := keep
	if andRemove {
		script += remove
	}
	args := []string{"-c", script, "sh", s.dir, filepath.Join(s.programs, "postgres"), "-D", s.data(), "-k", s.dir,
		"-p", strconv.Itoa(s.port)}
	defaults := []string{
		"listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=300", "shared_buffers=32MB",
		"max_wal_size=256MB", "autovacuum_naptime=10min",
	}
	for _, setting := range append(defaults, s.settings...) {
		args = append(args, "-c", setting)
	}
	k := &keeper{command: asServer("/bin/sh", args...)}
	k.command.Dir = s.dir
	if k.input, err = k.command.StdinPipe(); err != nil {
		return err
	}
	s.keeper = k
	return k.command.Start()
}

func (k *keeper) end() {
	_ = k.input.Close()
	_ = k.command.Wait()
}

// atExit holds what ends the shells of removeAtExit while the process runs.
var atExit []io.Closer

// removeAtExit removes a directory of the server's account when this process ends in any way.
func removeAtExit(dir string) error {
	command := asServer("/bin/sh", "-c", `cat; rm -rf "$1"`, "sh", dir)
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	atExit = append(atExit, input) // otherwise the pipe is closed once it is garbage
	return command.Start()
}

// startTime is the timeout for the start of a server, including recovery on a busy machine.
const startTime = 3 * time.Minute

// start starts the server and waits until it answers.
func (s *Server) start(andRemove bool) error {
	if err := s.keep(andRemove); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		err := s.exec(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("it does not answer: %w: its log: %s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Start starts the server again after Stop or Kill, and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(false); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// Stop shuts the server down in fast mode, which closes its connections, and waits for its end.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.signal(syscall.SIGINT); err != nil {
		t.Fatalf("stop PostgreSQL: %v", err)
	}
	for s.postmaster() != 0 {
		time.Sleep(5 * time.Millisecond)
	}
	s.keeper.end()
	s.keeper = nil
}

// Kill kills the server, like a crash. The next Start recovers all committed transactions, whatever the setting fsync.
func (s *Server) Kill() {
	if s.keeper == nil {
		return
	}
	pids := s.held()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.keeper.end()
	s.keeper = nil
	gone(pids)
}

// gone waits for the end of killed processes, because a server does not start beside remaining processes of another
// one. The wait is bounded, because without /proc zombies cannot be distinguished from running processes.
func gone(pids []int) {
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for runs(pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

// runs reports whether a process exists and is no zombie.
func runs(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := bytes.Cut(stat, []byte(") "))
		return !bytes.HasPrefix(state, []byte("Z"))
	}
	return syscall.Kill(pid, 0) == nil
}

// Pause stops all processes of the server until resume is called, like a machine that hangs. Connections stay open
// without answers.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	pids := s.held()
	resume = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	for _, pid := range pids { // some may have ended with their connections
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			resume()
			t.Fatalf("pause PostgreSQL: %v", err)
		}
	}
	return resume
}

// held returns the server's processes. It stops the first one before, so that it cannot start further children.
func (s *Server) held() []int {
	if first := s.postmaster(); first != 0 {
		_ = syscall.Kill(first, syscall.SIGSTOP)
	}
	return s.processes()
}

func (s *Server) signal(signal syscall.Signal) error {
	pid := s.postmaster()
	if pid == 0 {
		return errors.New("it does not run")
	}
	return syscall.Kill(pid, signal)
}

// postmaster returns the ID of the server's first process, or 0 if the server does not run.
func (s *Server) postmaster() int {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	pid, _ := strconv.Atoi(string(first))
	if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
		!bytes.Contains(command, []byte(s.data())) {
		return 0 // a stale file, whose number belongs to another process
	}
	return pid
}

// processes returns the server's first process and its children.
func (s *Server) processes() []int {
	first := s.postmaster()
	if first == 0 {
		return nil
	}
	pids := []int{first}
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if n, _ := fmt.Sscan(line, &pid, &parent); n == 2 && parent == first {
			pids = append(pids, pid)
		}
	}
	return pids
}
