package leaktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// Construct makes something in the empty directory dir, and returns what closes it. ctx is of the construction.
type Construct func(ctx context.Context, dir string) (closer func() error, err error)

// childVar names the test that a child process runs. Tests of hako remove variables named HAKO_*.
const childVar = "GO_LEAKTEST"

// maxSteps bounds the faults of one kind. A constructor with more steps fails the test.
const maxSteps = 2000

// Run runs the cases in a child process, because limits and counts are of a process. t has no other use.
func Run(t *testing.T, cases map[string]Construct) {
	t.Helper()
	RunBeside(t, nil, cases)
}

// RunBeside is Run with servers that the cases use. start starts them in the parent process, where their files and
// goroutines do not count, and returns variables (NAME=VALUE) for the environment of the cases.
func RunBeside(t *testing.T, start func() []string, cases map[string]Construct) {
	t.Helper()
	if os.Getenv(childVar) != t.Name() {
		child := exec.CommandContext(testwait.Context(t), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), childVar+"="+t.Name(), "TMPDIR="+t.TempDir())
		if start != nil {
			child.Env = append(child.Env, start()...)
		}
		output, err := child.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	debug.SetGCPercent(-1) // finalizers would close what has leaked
	for name, construct := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 { // what is made once for the process is made here
				if err := complete(t, construct); err != nil {
					t.Fatal(err)
				}
			}
			r := &run{t: t, construct: construct, before: count(t)}
			r.withoutFiles()
			r.withoutTime()
		})
	}
}

// complete makes and closes what construct makes.
func complete(t *testing.T, construct Construct) error {
	t.Helper()
	closer, err := construct(context.Background(), makeDir(t))
	if err != nil {
		return err
	}
	return closer()
}

func makeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(os.TempDir()), "case-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

type run struct {
	t         *testing.T
	construct Construct
	before    state
}

// surely is the number of successes that a constructor needs, since its background work may fail at first.
const surely = 3

// withoutFiles makes the construction fail for want of a file descriptor, at each step that needs one.
func (r *run) withoutFiles() {
	succeeded := 0
	for spare := range maxSteps {
		dir := makeDir(r.t)
		restore := limitFiles(r.t, spare)
		closer, err := r.construct(context.Background(), dir)
		restore()
		if err == nil {
			err = closer()
		}
		r.compare(fmt.Sprintf("with %d files to spare: %v", spare, err))
		if err == nil {
			succeeded++
		}
		if succeeded == surely || r.t.Failed() {
			r.t.Logf("it needs %d files", spare+1-surely)
			return
		}
	}
	r.t.Errorf("it needs more than %d files", maxSteps)
}

// withoutTime ends the context of the construction at each use of it.
func (r *run) withoutTime() {
	for uses := range maxSteps {
		ctx := &countdown{Context: context.Background(), left: uses, done: make(chan struct{})}
		closer, err := r.construct(ctx, makeDir(r.t))
		if err == nil {
			err = closer()
		}
		ended := ctx.end()
		r.compare(fmt.Sprintf("with a context that ends at use %d: %v", uses, err))
		if err == nil && !ended || r.t.Failed() {
			r.t.Logf("it uses its context %d times", uses)
			return
		}
	}
	r.t.Errorf("it uses its context more than %d times", maxSteps)
}

// countdown is a context that ends after a number of uses.
type countdown struct {
	context.Context
	mu   sync.Mutex
	left int
	done chan struct{}
}

func (c *countdown) use() (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == -1 {
		close(c.done)
	}
	return c.left < 0
}

// end ends the context if it has not ended, and reports whether it had.
func (c *countdown) end() (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ended = c.left < 0; !ended {
		c.left = -1
		close(c.done)
	}
	return ended
}

func (c *countdown) Done() <-chan struct{} {
	c.use()
	return c.done
}

func (c *countdown) Err() error {
	if c.use() {
		return context.Canceled
	}
	return nil
}

// state lists the resources of a process.
type state struct {
	files      []string
	goroutines int
	children   string
	temporary  []string
}

func count(t *testing.T) state {
	t.Helper()
	var s state
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if target, err := os.Readlink("/proc/self/fd/" + name); err == nil && name != strconv.Itoa(int(dir.Fd())) {
			s.files = append(s.files, target)
		}
	}
	slices.Sort(s.files)
	s.goroutines = runtime.NumGoroutine()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil {
			s.children += string(text)
		}
	}
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		s.temporary = append(s.temporary, entry.Name())
	}
	return s
}

// exceeds returns what s has more than before, or "".
func (s *state) exceeds(before *state) string {
	var more []string
	if len(s.files) > len(before.files) {
		more = append(more, fmt.Sprintf("open files:\n%s", strings.Join(s.files, "\n")))
	}
	if s.goroutines > before.goroutines {
		more = append(more, fmt.Sprintf("goroutines: %d instead of %d", s.goroutines, before.goroutines))
	}
	if len(s.children) > len(before.children) {
		more = append(more, "processes: "+s.children)
	}
	if len(s.temporary) > len(before.temporary) {
		more = append(more, "temporary files: "+strings.Join(s.temporary, " "))
	}
	return strings.Join(more, "\n")
}

// graceful is the number of looks at goroutines and processes that should end: a minute in all, which suffices on a
// busy machine, and which only a leak uses up.
const graceful = 12_000

// compare fails the test if something has been left behind. What ends in the background has time to.
func (r *run) compare(what string) {
	r.t.Helper()
	var more string
	for range graceful {
		now := count(r.t)
		if more = now.exceeds(&r.before); more == "" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	stacks := make([]byte, 64<<10)
	r.t.Errorf("%s\nleft behind: %s\n%s", what, more, stacks[:runtime.Stack(stacks, true)])
}

// limitFiles leaves the process spare file descriptors, until restore is called.
func limitFiles(t *testing.T, spare int) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = 0
	for free := 0; free <= spare; limit.Cur++ {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(limit.Cur), syscall.F_GETFD, 0)
		if errors.Is(errno, syscall.EBADF) {
			free++
		}
	}
	limit.Cur-- // the last one is one too many
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}
}

// Closer adapts an io.Closer.
func Closer(c io.Closer, err error) (func() error, error) {
	if err != nil {
		return nil, err
	}
	return c.Close, nil
}
