//go:build linux

package confine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/judge"
)

func TestMain(m *testing.M) {
	confine.Main()
	if filepath.Base(os.Args[0]) == "probe" {
		syscall.Exit(probe(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

// result describes what a command did.
type result struct {
	exit        *confine.Exit
	out, errOut string
	asked       []string
	err         error
}

// box is a writable directory and the rest of the commands' grants.
type box struct {
	dir, outside string
	spec         confine.Spec
	agree        bool
}

func newBox(t *testing.T, programs ...string) *box {
	t.Helper()
	if s := confine.Check(); !s.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands: "+s.Missing())
	}
	b := &box{dir: t.TempDir(), outside: t.TempDir()}
	temp := t.TempDir()
	b.spec = confine.Spec{
		Dir: b.dir, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + temp, "TMPDIR=" + temp, "LANG=C"},
		Read: []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache"}, Write: []string{b.dir, temp},
		Limits: confine.Limits{CPU: 20 * time.Second, Memory: 1 << 30, Processes: 200, Files: 256, FileSize: 64 << 20},
	}
	for _, name := range programs {
		b.grant(t, name)
	}
	return b
}

func (b *box) grant(t *testing.T, name string) {
	t.Helper()
	path, err := filepath.EvalSymlinks(testprogram.Find(t, name))
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Programs = append(b.spec.Programs, confine.Program{Name: name, Path: path})
	if matches, _ := filepath.Glob("/lib*/ld-*.so*"); len(b.spec.Execute) == 0 {
		for _, match := range matches {
			real, err := filepath.EvalSymlinks(match)
			if err != nil {
				t.Fatal(err)
			}
			b.spec.Execute = append(b.spec.Execute, real)
		}
	}
}

func (b *box) line(ctx context.Context, line string) *result {
	spec := b.spec
	spec.Line = line
	return b.run(ctx, &spec)
}

func (b *box) run(ctx context.Context, spec *confine.Spec) *result {
	var out, errOut bytes.Buffer
	r := new(result)
	r.exit, r.err = confine.Run(ctx, spec, &confine.Options{Stdout: &out, Stderr: &errOut,
		Ask: func(_ context.Context, q confine.Question) error {
			r.asked = append(r.asked, q.Command)
			if !b.agree {
				return errors.New("refused by aki")
			}
			return nil
		}})
	r.out, r.errOut = out.String(), errOut.String()
	return r
}

func (r *result) String() string {
	return fmt.Sprintf("exit %+v, error %v, output %q, errors %q, asked %q", r.exit, r.err, r.out, r.errOut, r.asked)
}

func (b *box) write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	b := newBox(t, "cat", "ls", "grep", "head", "sleep", "env", "false", "rm")
	b.write(t, "a.txt", "one\ntwo\n", 0o644)
	b.write(t, "script.sh", "cat a.txt | head -n $1; exit 7\n", 0o644)
	tests := []struct {
		name, line, out string
		code            int
	}{
		{"a program", "cat a.txt", "one\ntwo\n", 0},
		{"a pipe", "cat a.txt | grep two", "two\n", 0},
		{"lists", "false || cat a.txt && echo ok", "one\ntwo\nok\n", 0},
		{"variables and substitutions", `x=$(head -n1 a.txt); for i in 1 2; do echo "$x$i"; done`, "one1\none2\n", 0},
		{"globs", "echo *.txt", "a.txt\n", 0},
		{"redirections", "echo three >> a.txt; cat < a.txt", "one\ntwo\nthree\n", 0},
		{"process substitution", "cat <(echo hi)", "hi\n", 0},
		{"here-documents", "cat <<E\nx $((1+1))\nE", "x 2\n", 0},
		{"a script", "sh script.sh 1", "one\n", 7},
		{"a line for another shell", `bash -ec 'echo "$1"; false; echo no' _ yes`, "yes\n", 1},
		{"standard input of a shell", "echo 'echo deep' | sh", "deep\n", 0},
		{"an exit status", "(exit 3)", "", 3},
		{"standard input is empty", "cat", "", 0},
		{"exported variables", "export X=1; env | grep ^X=", "X=1\n", 0},
		{"options of a shell", "bash -uo pipefail -c 'false | true; echo $?'", "1\n", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := b.line(t.Context(), test.line)
			if r.err != nil || r.out != test.out || r.exit.Code != test.code {
				t.Errorf("%s: %v", test.line, r)
			}
		})
	}
	spec := b.spec
	spec.Argv = []string{"cat", "$(echo a.txt)"}
	if r := b.run(t.Context(), &spec); r.exit == nil || r.exit.Code != 1 ||
		!strings.Contains(r.errOut, "$(echo a.txt)") {
		t.Errorf("arguments are taken for a line: %v", r)
	}
}

// TestJudged: commands whose arguments are known only at run time are judged at their start.
func TestJudged(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ls", "rm", "env", "xargs", "find", "chmod", "cp", "nohup")
	for _, line := range []string{
		"x=rm; $x -rf keep", `$(echo rm) -rf keep`, "/bin/r? -rf keep", `a='-rf keep'; rm $a`,
		`eval "r""m -rf keep"`, "ln=rm; $ln -r -f keep",
		"f() { rm \"$@\"; }; f -rf keep", "sh -c 'x=rm; $x -rf keep'", "echo 'rm -rf keep' | sh",
		"echo 'rm -rf keep' > s; sh s; sh ./s; . ./s; source s",
		"trap 'rm -rf keep' EXIT", "alias x='rm -rf'; shopt -s expand_aliases\nx keep", "env rm -rf keep",
		"x=rm; env $x -rf keep", "nohup rm -rf keep",
		"echo keep | xargs rm -rf", "find keep -delete", "find . -name keep -exec rm -rf {} +",
		"set -- rm -rf keep; \"$@\"", "IFS_=x; rm${IFS_}", "${X:=rm} -rf keep",
		"cp /bin/rm myrm; ./myrm -rf keep", "exec rm -rf keep", "command rm -rf keep", "! rm -rf keep",
		"coproc rm -rf keep", "time rm -rf keep",
		"PATH=.:$PATH; cp /bin/rm ls; ls -rf keep", "export PATH=.; ls",
		"/lib64/ld-linux-x86-64.so.2 /bin/rm -rf keep", "{rm,-rf,keep}", "rm -$(echo rf) keep",
	} {
		if err := os.MkdirAll(filepath.Join(b.dir, "keep", "file"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := b.line(t.Context(), line)
		if _, err := os.Stat(filepath.Join(b.dir, "keep", "file")); err != nil {
			t.Errorf("%s deleted the directory: %v", line, r)
		}
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	b := newBox(t, "chmod", "ls", "env")
	b.write(t, "x", "", 0o644)
	if r := b.line(t.Context(), "chmod 600 x; echo $?"); r.out != "126\n" || len(r.asked) != 1 ||
		!strings.Contains(r.errOut, "refused by aki") {
		t.Errorf("refused: %v", r)
	}
	b.agree = true
	if r := b.line(t.Context(), "m=600; chmod $m x && ls"); r.out != "x\n" || len(r.asked) != 1 ||
		r.asked[0] != "chmod 600 x" {
		t.Errorf("agreed: %v", r)
	}
	b.spec.Approved = [][]string{{"chmod", "640", "x"}}
	if r := b.line(t.Context(), "chmod 640 x"); r.exit.Code != 0 || len(r.asked) != 0 {
		t.Errorf("agreed to before: %v", r)
	}
	b.spec.Rules = []judge.Rule{{Name: "no modes", Action: judge.Deny, Programs: []string{"chmod"}, Reason: "never"}}
	if r := b.line(t.Context(), "chmod 640 x"); r.exit.Code != 126 || !strings.Contains(r.errOut,
		`denied by the rule "no modes": never`) {
		t.Errorf("a rule of the operator's: %v", r)
	}
}

// TestGrants: programs that were not granted do not start under any name.
func TestGrants(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ls", "env")
	b.write(t, "ls", "#!/bin/sh\necho mine\n", 0o755)
	for _, test := range []struct{ name, line, want string }{
		{"another program", "cat /etc/passwd", "cat is not granted"},
		{"its path", "/bin/cat /etc/passwd", "/bin/cat is not granted"},
		{"a program of the same name", "./ls", "/ls is not granted"},
		{"a program within another", "env cat /etc/passwd", "env would start cat"},
		{"a link to another program", "ln -s /bin/cat ls2; ./ls2", "is not"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if r := b.line(t.Context(), test.line); r.out != "" || r.exit.Code == 0 ||
				!strings.Contains(r.errOut, test.want) {
				t.Errorf("%s: %v", test.line, r)
			}
		})
	}
}

// TestHostileCommandKernel: the kernel restricts what a program does by itself, which rules cannot see. The probe
// stands for a program that was allowed by mistake.
func TestHostileCommandKernel(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ls")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Programs = append(b.spec.Programs, confine.Program{Name: "probe", Path: self})
	secret := filepath.Join(b.outside, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket := filepath.Join(b.dir, "socket") // in a directory that the command may write
	other, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	host := strconv.Itoa(os.Getpid())
	shared, err := unix.SysvShmGet(os.Getpid(), 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SysvShmCtl(shared, unix.IPC_RMID, nil)
	run := func(argv ...string) *result {
		spec := b.spec
		spec.Argv = append([]string{"probe"}, argv...)
		return b.run(t.Context(), &spec)
	}
	if r := run("write", "inside"); r.exit == nil || r.exit.Code != 0 {
		t.Fatalf("writing inside: %v", r)
	}
	if r := run("read", "inside"); r.out != "written" {
		t.Fatalf("reading inside: %v", r)
	}
	for _, own := range []string{"chmod", "touch", "attribute"} {
		if r := run(own, "inside"); r.exit == nil || r.exit.Code != 0 {
			t.Errorf("%s of an own file: %v", own, r)
		}
	}
	const denied = "permission denied|read-only file system"
	for _, test := range []struct {
		name string
		argv []string
		want string
	}{
		{"reads outside", []string{"read", secret}, "permission denied"},
		{"writes outside", []string{"write", filepath.Join(b.outside, "new")}, denied},
		{"deletes outside", []string{"remove", secret}, denied},
		{"lists outside", []string{"list", b.outside}, "permission denied"},
		{"follows a link outside", []string{"symlink", secret, "link"}, "permission denied"},
		{"links a file in", []string{"link", secret, "hard"}, "invalid cross-device link"},
		{"renames a file in", []string{"rename", secret, "moved"}, denied + "|cross-device"},
		{"changes a mode outside", []string{"chmod", secret}, denied},
		{"changes a mode of the system's", []string{"chmod", "/usr/share"}, denied},
		{"changes an owner outside", []string{"chown", secret}, denied},
		{"changes a time outside", []string{"touch", secret}, denied},
		{"changes an attribute outside", []string{"attribute", secret}, denied},
		{"sees the host's open files", []string{"descriptors"}, "^exit &{Code:0"},
		{"reads the host's environment", []string{"read", "/proc/" + host + "/environ"}, "permission denied"},
		{"reads password hashes", []string{"read", "/etc/shadow"}, "permission denied"},
		{"starts another program", []string{"exec", "/bin/cat", secret}, "permission denied"},
		{"starts a program of its own", []string{"own"}, "permission denied"},
		{"reaches the machine's network", []string{"dial", "tcp", listener.Addr().String()}, "not permitted"},
		{"sends a datagram", []string{"dial", "udp", "192.0.2.1:53"}, "not permitted"},
		{"talks to another program by a socket", []string{"dial", "unix", socket}, "not permitted"},
		{"talks to it by another kind of socket", []string{"pair", socket}, "address family not supported"},
		{"asks for sockets without rules", []string{"socket", "2", "262"}, "not permitted"},
		{"asks for the network's configuration", []string{"socket", "16", "0"}, "not permitted"},
		{"talks to the hypervisor", []string{"socket", "40", "0"}, "not permitted"},
		{"makes a namespace", []string{"syscall", strconv.Itoa(unix.SYS_UNSHARE),
			strconv.Itoa(unix.CLONE_NEWUSER)}, "not permitted"},
		{"makes a namespace for a child", []string{"syscall", strconv.Itoa(unix.SYS_CLONE),
			strconv.Itoa(unix.CLONE_NEWUSER)}, "not permitted"},
		{"hides calls", []string{"syscall", strconv.Itoa(unix.SYS_IO_URING_SETUP), "8"}, "not permitted"},
		{"looks into processes", []string{"syscall", strconv.Itoa(unix.SYS_PTRACE), "0"}, "not permitted"},
		{"signals the host", []string{"signal", host}, "process already finished|no such process|not permitted"},
		{"shares memory with the host", []string{"syscall", strconv.Itoa(unix.SYS_SHMGET), host}, "no such file|not permitted"},
		{"kills what watches over it", []string{"signal", "1"}, "alive"},
		{"mounts", []string{"mount"}, "not permitted"},
		{"changes its user", []string{"setuid"}, "not permitted|invalid argument"},
		{"writes a huge file", []string{"grow"}, "file too large|signal: file size limit exceeded"},
		{"eats memory", []string{"memory"}, "out of memory|cannot allocate memory|failed to allocate"},
		{"opens files without end", []string{"files"}, "too many open files"},
		{"ends by a signal", []string{"suicide"}, "killed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := run(test.argv...)
			if !regexp.MustCompile(test.want).MatchString(r.String()) {
				t.Errorf("want %s: %v", test.want, r)
			}
			if strings.Contains(r.String(), "s3cret") {
				t.Errorf("the secret is out: %v", r)
			}
		})
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "s3cret" {
		t.Errorf("the file outside: %q, %v", text, err)
	}
}

// TestHostileCommandProcesses: a command has no more processes than its limit, and none is left after it. Linux holds
// root to no limit (docs/exec.md); root's processes end with the command as well.
func TestHostileCommandProcesses(t *testing.T) {
	t.Parallel()
	b := newBox(t, "ls")
	if !confine.Check().Namespaces {
		testprogram.Missing(t, "without namespaces of its own a command has no limit of processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Programs = append(b.spec.Programs, confine.Program{Name: "probe", Path: self})
	for _, name := range []string{"a command", "another one at the same time"} { // each has a limit of its own
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := b.spec
			spec.Argv = []string{"probe", "processes"}
			mark := "mark=" + rand.Text()
			spec.Env = append(slices.Clone(spec.Env), mark)
			r := b.run(t.Context(), &spec)
			var started uint64
			if _, err := fmt.Sscanf(r.out, "started %d", &started); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			switch limit := b.spec.Limits.Processes; {
			case os.Getuid() == 0 && started == 1000:
			case started > limit || started < limit/2 || !strings.Contains(r.errOut, "resource temporarily unavailable"):
				t.Errorf("%d processes of at most %d: %v", started, limit, r)
			}
			environments, err := filepath.Glob("/proc/[0-9]*/environ")
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range environments {
				if environment, err := os.ReadFile(path); err == nil && bytes.Contains(environment, []byte(mark)) {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
	testprogram.RunUnprivileged(t)
}

// TestGone: after its end or its deadline, no process of a command is left.
func TestGone(t *testing.T) {
	t.Parallel()
	b := newBox(t, "sleep", "setsid", "nohup", "env")
	if !confine.Check().Namespaces {
		testprogram.Missing(t, "without namespaces of its own a process can leave its group")
	}
	for _, line := range []string{
		"sleep 3131 & sleep 3131", "trap '' TERM INT HUP; sleep 3131", "setsid sleep 3131 & sleep 3131",
		"nohup setsid env sleep 3131 & sleep 3131",
		"(sleep 3131 &) ; while true; do :; done", ":(){ :|:& };:", "f() { sleep 3131 & f; }; f",
		"while :; do (sleep 3131 &); done",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		start := time.Now()
		r := b.line(ctx, line)
		cancel()
		if r.err == nil && !strings.HasPrefix(line, ":") { // it works in the background
			t.Errorf("%s ended by itself: %v", line, r)
		}
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("%s took %v to end", line, took)
		}
	}
	if r := b.line(t.Context(), "setsid sleep 3131 & echo started"); r.err != nil || r.out != "started\n" {
		t.Errorf("%v", r)
	}
	if left, err := exec.Command("pgrep", "-f", "sleep 3131").Output(); err == nil {
		t.Errorf("processes are left: %s", left)
	}
}

// TestWithoutNamespaces: without namespaces, paths, modes and sockets are still restricted, and the end of a command
// ends its process group. It is not parallel, because it changes the result of Check.
func TestWithoutNamespaces(t *testing.T) {
	b := newBox(t, "ls", "sleep", "setsid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Programs = append(b.spec.Programs, confine.Program{Name: "probe", Path: self})
	support := confine.Check()
	support.Namespaces = false
	defer confine.Pretend(support)()
	if !support.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands without namespaces")
	}
	listening := b.spec
	listening.Argv, listening.Listen = []string{"ls"}, []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")}
	if r := b.run(t.Context(), &listening); !errors.Is(r.err, confine.ErrCannotConfine) {
		t.Errorf("a network without namespaces: %v", r)
	}
	secret := filepath.Join(b.outside, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{"write", "inside"}, "^exit &{Code:0"},
		{[]string{"read", "inside"}, `output "written"`},
		{[]string{"read", secret}, "permission denied"},
		{[]string{"write", filepath.Join(b.outside, "new")}, "permission denied"},
		{[]string{"remove", secret}, "permission denied"},
		{[]string{"chmod", secret}, "not permitted"},
		{[]string{"chown", secret}, "not permitted"},
		{[]string{"touch", secret}, "not permitted"},
		{[]string{"attribute", secret}, "not permitted"},
		{[]string{"dial", "udp", "192.0.2.1:53"}, "not permitted"},
		{[]string{"dial", "tcp", "127.0.0.1:1"}, "not permitted"},
		{[]string{"syscall", strconv.Itoa(unix.SYS_SHMGET), "0"}, "not permitted"},
		{[]string{"syscall", strconv.Itoa(unix.SYS_SEMTIMEDOP), "0"}, "not permitted"},
		{[]string{"syscall", strconv.Itoa(unix.SYS_MQ_OPEN), "0"}, "not permitted"},
		{[]string{"setuid"}, "^exit"}, // root may change its user, with the same restrictions
	} {
		spec := b.spec
		spec.Argv = append([]string{"probe"}, test.argv...)
		if r := b.run(t.Context(), &spec); !regexp.MustCompile(test.want).MatchString(r.String()) {
			t.Errorf("%q: want %s: %v", test.argv, test.want, r)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if r := b.line(ctx, "sleep 3135 & sleep 3135"); !errors.Is(r.err, context.DeadlineExceeded) {
		t.Errorf("%v", r)
	}
	start := time.Now()
	if r := b.line(t.Context(), "sleep 3135 & setsid sleep 60 & echo started"); r.err != nil || r.out != "started\n" {
		t.Errorf("%v", r)
	}
	if took := time.Since(start); took > 50*time.Second {
		t.Errorf("a command that leaves something behind took %v", took)
	}
	if left, err := exec.Command("pgrep", "-f", "sleep 3135").Output(); err == nil {
		t.Errorf("processes are left: %s", left)
	}
}

// TestFlood: output arrives while the command runs, and its reader can stop the command.
func TestFlood(t *testing.T) {
	t.Parallel()
	b := newBox(t, "yes")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec := b.spec
	spec.Argv = []string{"yes"}
	_, err := confine.Run(ctx, &spec, &confine.Options{Stdout: &limited{left: 10 << 20, full: cancel},
		Stderr: new(bytes.Buffer)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a flood ends with %v", err)
	}
}

type limited struct {
	left int
	full func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		l.full()
		return 0, errors.New("full")
	}
	return len(p), nil
}
