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

// accounts are tried in this order where the tests run as root, which PostgreSQL refuses.
var accounts = []string{"postgres", "nobody"}

// credential is whom the server runs as; nil means as the tests do.
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

// giveAway makes the server's account the owner of a directory.
func giveAway(dir string) error {
	c := credential()
	if c == nil {
		return nil
	}
	return os.Chown(dir, int(c.Uid), int(c.Gid))
}

// asServer is a command that runs as the server's account, in a process group of its own.
func asServer(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential(), Setpgid: true}
	command.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	return command
}

// keeper is a shell that runs the server for as long as this process lives, however that ends: it waits for the end of its standard
// input.
type keeper struct {
	input   io.Closer
	command *exec.Cmd
}

const (
	keep   = `dir=$1; shift; "$@" >>"$dir/log" 2>&1 & server=$!; cat; kill -QUIT $server 2>/dev/null; wait $server`
	remove = `; rm -rf "$dir"`
	// A shell makes what it runs in the background deaf to SIGQUIT, which PostgreSQL hears again and PgBouncer does not.
	keepPooler = `dir=$1; shift; "$@" >>"$dir/log" 2>&1 & pooler=$!; cat; kill -KILL $pooler 2>/dev/null; wait $pooler` + remove
)

func (s *Server) keep(andRemove bool) (err error) {
	script := keep
	if andRemove {
		script += remove
	}
	args := []string{"-c", script, "sh", s.dir, filepath.Join(s.programs, "postgres"), "-D", s.data(), "-k", s.dir, "-p", strconv.Itoa(s.port)}
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

// startTime bounds the start of a server, also of one that recovers on a machine that does much else.
const startTime = 3 * time.Minute

// start runs the server and waits until it answers.
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

// Start runs the server again after Stop or Kill, and returns when it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(false); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// Stop ends the server in order and breaks its connections off (a fast shutdown). It returns when it has ended.
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

// Kill ends the server as a crash does, at once. What was committed is recovered at the next Start, whatever the setting fsync.
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

// gone waits until processes that were killed are, for a server does not start beside what is left of another one. It does not wait for ever,
// because where there is no /proc it is not seen that nobody wants to hear of their end.
func gone(pids []int) {
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for runs(pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

// runs reports whether there is a process that has not ended.
func runs(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := bytes.Cut(stat, []byte(") "))
		return !bytes.HasPrefix(state, []byte("Z"))
	}
	return syscall.Kill(pid, 0) == nil
}

// Pause stops all processes of the server in their tracks, as a machine that hangs does, until resume is called: connections stay open and
// nobody answers.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	pids := s.held()
	resume = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	for _, pid := range pids { // but for those that have ended meanwhile, with their connections
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			resume()
			t.Fatalf("pause PostgreSQL: %v", err)
		}
	}
	return resume
}

// held are processes, of which the first is stopped, so that it has no children that are not seen.
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

// postmaster is the server's first process; 0: it does not run.
func (s *Server) postmaster() int {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	pid, _ := strconv.Atoi(string(first))
	if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !bytes.Contains(command, []byte(s.data())) {
		return 0 // the file was left behind, and the number is another's
	}
	return pid
}

// processes are the server's first process and its children.
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
