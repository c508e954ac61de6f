//go:build linux

package confine_test

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/host/confine"
)

// TestInheritedSignals: a program starts with the default action of every signal and none blocked, whatever the
// supervisor and the host do with signals. The umask is the host's, the limits are those of the spec. It is not
// parallel, because it changes how this process treats signals.
func TestInheritedSignals(t *testing.T) {
	b := newBox(t, "cat", "env")
	b.spec.Read = append(b.spec.Read, "/proc")
	b.write(t, "script.sh", "#!/bin/sh\ncat /proc/self/status /proc/self/limits\n", 0o755)
	runtime.LockOSThread() // the mask is the thread's
	defer runtime.UnlockOSThread()
	signal.Ignore(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGPIPE)
	defer ignoreCancel(t)()
	blocked, before := new(unix.Sigset_t), new(unix.Sigset_t)
	blocked.Val[0] = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGUSR1-1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, blocked, before); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, before, nil) }()
	umask := ""
	for line := range strings.Lines(readFile(t, "/proc/self/status")) {
		if strings.HasPrefix(line, "Umask:") {
			umask = line
		}
	}
	const show = "cat /proc/self/status /proc/self/limits"
	for name, spec := range map[string]confine.Spec{
		"a program":          {Argv: []string{"cat", "/proc/self/status", "/proc/self/limits"}},
		"a line":             {Line: show},
		"a pipeline":         {Line: show + " | cat"},
		"the background":     {Line: show + " & wait"},
		"a substitution":     {Line: `echo "$(` + show + `)"`},
		"a shell":            {Line: "sh -c '" + show + "'"},
		"a script":           {Line: "sh script.sh"},
		"a program's child":  {Line: "env " + show},
		"after trap":         {Line: "trap '' TERM; " + show},
		"without namespaces": {Line: show},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_ = unix.PthreadSigmask(unix.SIG_BLOCK, blocked, nil)
			defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, before, nil) }()
			if name == "without namespaces" {
				support := confine.Check()
				support.Namespaces = false
				defer confine.Pretend(support)()
			}
			whole := b.spec
			whole.Argv, whole.Line = spec.Argv, spec.Line
			r := b.run(t.Context(), &whole)
			for _, want := range []string{"SigBlk:\t0000000000000000\n", "SigIgn:\t0000000000000000\n", umask,
				"Max open files            256                  256"} {
				if r.err != nil || !strings.Contains(r.out, want) {
					t.Errorf("no %q: %v", want, r)
				}
			}
		})
	}
}

// ignoreCancel makes this process ignore signal 32, which is the C library's own and unknown to os/signal, until the
// returned function is called.
func ignoreCancel(t *testing.T) (restore func()) {
	t.Helper()
	const number = 32
	var before [8]uintptr // struct sigaction of the kernel, whose first field is the handler
	ignore := [8]uintptr{1}
	set := func(action, old *[8]uintptr) {
		t.Helper()
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(action)),
			uintptr(unsafe.Pointer(old)), 8, 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
	}
	set(&ignore, &before)
	return func() { set(&before, nil) }
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestClosedPipe: what writes to a pipe ends when its reader is gone, programs and builtins alike, and the rest of the
// line goes on.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		line, out string
		code      int
	}{
		"a program":              {"yes | head -n1", "y\n", 0},
		"its status":             {"set -o pipefail; yes | head -n1", "y\n", 141},
		"a builtin's status":     {"set -o pipefail; while :; do echo y; done | head -n1", "y\n", 141},
		"echo":                   {"while true; do echo y; done | head -n1; echo after", "y\nafter\n", 0},
		"echo without a newline": {"while :; do echo -n yy; done | head -c1", "y", 0},
		"printf":                 {`until false; do printf '%s\n' y; done | head -n1`, "y\n", 0},
		"pwd":                    {"for ((;;)); do pwd; done | head -c1", "/", 0},
		"by another builtin":     {"while :; do command builtin echo y; done | head -n1", "y\n", 0},
		"eval":                   {"while :; do eval 'echo y'; done | head -n1", "y\n", 0},
		"a function":             {"f() { while :; do echo y; done; }; f | head -n1", "y\n", 0},
		"a subshell":             {"(while :; do echo y; done) | head -n1", "y\n", 0},
		"a shell":                {"sh -c 'while :; do echo y; done' | head -n1", "y\n", 0},
		"the middle":             {"yes | while read -r l; do echo $l; done | head -n1", "y\n", 0},
		"standard error":         {"while :; do echo y >&2; done 2>&1 | head -n1", "y\n", 0},
		"both streams":           {"while :; do echo y >&2; done |& head -n1", "y\n", 0},
		"a substitution":         {"x=$(while :; do echo y; done | head -n1); echo $x", "y\n", 0},
		"from a process":         {"head -n1 <(while :; do echo y; done)", "y\n", 0},
		"other output": {"{ sleep 0.3; echo kept > kept; echo lost; echo never > never; } | true; cat kept; " +
			"[ -e never ] || echo ended", "kept\nended\n", 0},
		"programs go on": {"{ sleep 0.3; cp a.txt b.txt; cd .; test -e b.txt; x=1; } | true; cat b.txt", "one\n", 0},
		"nothing is written": {"{ sleep 0.3; printf ''; echo -n; echo -n ''; echo kept > kept; } | true; cat kept",
			"kept\n", 0},
		"a function's name":   {"echo() { cat a.txt > got; }; { sleep 0.3; echo x; } | true; cat got", "one\n", 0},
		"a reader that lasts": {"for i in 1 2 3; do echo $i; sleep 0.1; done | cat", "1\n2\n3\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "yes", "head", "sleep", "cat", "cp")
			b.write(t, "a.txt", "one\n", 0o644)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := b.line(ctx, test.line)
			if r.err != nil || r.out != test.out || r.errOut != "" || r.exit.Code != test.code {
				t.Errorf("%s: %v", test.line, r)
			}
		})
	}
}
