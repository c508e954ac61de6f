package confine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// namespaces are the clone flags of the child. The supervisor gets a PID namespace besides.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET

// Support describes the kernel's means to confine commands.
type Support struct {
	// Landlock is the version of the Landlock ABI, or 0.
	Landlock int
	// Namespaces reports whether unprivileged processes can create namespaces.
	Namespaces bool
	// Filter reports whether seccomp filters are available.
	Filter bool
}

// Check returns what this machine supports. It tests that once.
func Check() Support { return check() }

var check = sync.OnceValue(func() Support {
	s := Support{Namespaces: tryNamespaces(), Filter: hasFilter()}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == 0 {
		s.Landlock = int(version)
	}
	return s
})

// tryNamespaces starts a process like the child, which runs probe.
func tryNamespaces() bool {
	if !ready.Load() {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	command := exec.Command(self)
	command.Args, command.Env = []string{probeName}, []string{ids()}
	command.SysProcAttr = namespaceAttr(namespaces | unix.CLONE_NEWPID)
	return command.Run() == nil
}

// Required versions of the Landlock ABI: with namespaces the one that controls renames between directories, without
// them the one that controls truncation.
const (
	landlockWithNamespaces = 2
	landlockAlone          = 3
)

// Confines reports whether commands can be restricted to paths and kept off the network.
func (s Support) Confines() bool {
	return s.Filter && (s.Landlock >= landlockAlone || s.Landlock >= landlockWithNamespaces && s.Namespaces)
}

// ConfinesNetwork reports whether commands can be restricted to some hosts, which needs a network namespace.
func (s Support) ConfinesNetwork() bool { return s.Confines() && s.Namespaces }

// Missing returns what the machine lacks and the remedy. It is empty if nothing is missing.
func (s Support) Missing() string {
	if !ready.Load() {
		return errNoMain.Error()
	}
	var missing []string
	if !s.Filter {
		missing = append(missing, "the kernel has no seccomp filters, or hako has none for this processor")
	}
	switch {
	case s.Landlock == 0:
		missing = append(missing, "the kernel has no Landlock (Linux 5.19 and newer, with landlock among the lsm= "+
			"modules)")
	case s.Landlock < landlockAlone && !s.Namespaces, s.Landlock < landlockWithNamespaces:
		missing = append(missing, fmt.Sprintf("the kernel has version %d of Landlock: "+
			"hako needs 2 (Linux 5.19), or 3 without namespaces (Linux 6.2)", s.Landlock))
	}
	if !s.Namespaces {
		missing = append(missing, "unprivileged processes cannot create namespaces (sysctl "+
			"kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, AppArmor's restriction of them, "+
			"a container's seccomp profile, or RestrictNamespaces= and SystemCallFilter= of a systemd unit)")
	}
	return strings.Join(missing, "; ")
}

// idsVariable passes the outer user and group IDs to a process in a user namespace.
const idsVariable = "HAKO_IDS"

func ids() string { return fmt.Sprintf("%s=%d %d", idsVariable, os.Getuid(), os.Getgid()) }

// mapIDs maps the user and group IDs of this process's user namespace to the same IDs outside. Its parent cannot do
// that: if the parent is sealed (package process), the files in /proc of a child belong to root until its execve.
func mapIDs() error {
	var uid, gid int
	if _, err := fmt.Sscan(os.Getenv(idsVariable), &uid, &gid); err != nil {
		return fmt.Errorf("%s: %w", idsVariable, err)
	}
	for _, f := range []struct{ name, text string }{
		{"setgroups", "deny"}, {"gid_map", fmt.Sprintf("%d %d 1", gid, gid)},
		{"uid_map", fmt.Sprintf("%d %d 1", uid, uid)},
	} {
		if err := os.WriteFile("/proc/self/"+f.name, []byte(f.text), 0); err != nil {
			return err
		}
	}
	return nil
}

// namespaceAttr returns the attributes of a process in new namespaces. It has the capabilities to create further ones
// and to restrict itself. It must call mapIDs first.
func namespaceAttr(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid:     true,
		Cloneflags:  flags,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP},
	}
}

// setNamespaces makes the child the leader of a process group and, if the machine supports that, starts it in new
// namespaces.
func setNamespaces(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if Check().Namespaces {
		command.SysProcAttr = namespaceAttr(namespaces)
	}
}

// kill kills the child and its process group. In a PID namespace the kernel kills all other processes with it.
func kill(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// socketPair returns both ends of a connection between host and child.
func socketPair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

// memoryFile returns an anonymous file that contains data.
func memoryFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "spec")
	if _, err := file.WriteAt(data, 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// confineSelf restricts this process and its descendants to the spec. self is the path of this program, which it starts
// once more.
func confineSelf(o *childSpec, self string) error {
	if err := limitSelf(&o.Limits); err != nil {
		return err
	}
	if o.Namespaces {
		if err := mapIDs(); err != nil {
			return err
		}
		if err := sealFileSystem(o.Write, o.Replace); err != nil {
			return err
		}
	}
	// BestEffort: the newest Landlock version that the kernel supports. Connections need no rules: the command has its
	// own network namespace, or cannot create sockets.
	config := landlock.MustConfig(landlock.V7.HandledAccessFS, landlock.V7.Scoped)
	return config.BestEffort().Restrict(append(rules(o.Spec), access(self, readFile|execute))...)
}

// isolate starts the supervisor in a PID namespace as its first process, so that all others end with it. This
// goroutine, which is locked to its thread, must start it. The supervisor has no capabilities in the other namespaces.
func isolate(command *exec.Cmd, o *childSpec) error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !o.Namespaces {
		return nil
	}
	command.SysProcAttr.Cloneflags = unix.CLONE_NEWPID
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		// Only root could regain it. The kernel may know fewer capabilities than this program.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return os.NewSyscallError("prctl", err)
		}
	}
	// Programs of root also get the inheritable capabilities.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	return os.NewSyscallError("capset", unix.Capset(&header, &sets[0]))
}

// limitProcesses limits the processes in this user namespace. Without one the limit would count all processes of the
// user.
func limitProcesses(o *childSpec) error {
	if o.Limits.Processes == 0 || !o.Namespaces {
		return nil
	}
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_NPROC,
		&unix.Rlimit{Cur: o.Limits.Processes, Max: o.Limits.Processes}))
}

// unblockSignals unblocks all signals in this thread, and so in the processes that it starts, which inherit the signals
// that are blocked. Those of the host are none of theirs.
func unblockSignals() error {
	return os.NewSyscallError("rt_sigprocmask", unix.PthreadSigmask(unix.SIG_SETMASK, new(unix.Sigset_t), nil))
}

// resetIgnoredSignals gives the signals that this process ignores their default action. After os/signal catches all that
// Go knows of, these are the C library's own (32 and 33 in signal(7)), which the host's parent may ignore.
func resetIgnoredSignals() error {
	const ignored = 1 // SIG_IGN
	for number := uintptr(1); number <= 64; number++ {
		var old, byDefault [8]uintptr // struct sigaction of the kernel, whose first field is the handler, or larger
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, 0, uintptr(unsafe.Pointer(&old)), 8, 0, 0)
		if errno == 0 && old[0] == ignored {
			_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		}
		if errno != 0 {
			return os.NewSyscallError("rt_sigaction", errno)
		}
	}
	return nil
}

// readerGone reports whether file is a pipe that nobody can read from any more.
func readerGone(file *os.File) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n == 1 && fds[0].Revents&unix.POLLERR != 0
	})
	return err == nil && gone
}

// setCloseOnExec marks all open files of this process, including inherited ones, as close-on-exec.
func setCloseOnExec() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}

// probe tests in a child process whether it can restrict itself.
func probe() int {
	if mapIDs() != nil || bringUpLoopback(nil) != nil || sealFileSystem(nil, nil) != nil {
		return 1
	}
	return 0
}

// Landlock access rights.
const (
	execute  = unix.LANDLOCK_ACCESS_FS_EXECUTE
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	// change is every right except executing and creating devices.
	change = readFile | readDir | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// rules returns the Landlock rules for spec.
func rules(spec *Spec) []landlock.Rule {
	rules := []landlock.Rule{landlock.RWFiles("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
		"/dev/full").IgnoreIfMissing()}
	for _, path := range spec.Read {
		rules = append(rules, access(path, readFile))
	}
	for _, path := range spec.Execute {
		rules = append(rules, access(path, readFile|execute))
	}
	for _, program := range spec.Programs {
		rules = append(rules, access(program.Path, readFile|execute))
	}
	for _, path := range spec.Write {
		rules = append(rules, landlock.PathAccess(change, path).IgnoreIfMissing())
	}
	return rules
}

// access allows rights on a file, or on a directory and all that is below it.
func access(path string, rights landlock.AccessFSSet) landlock.Rule {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		rights |= readDir
	}
	return landlock.PathAccess(rights, path).IgnoreIfMissing()
}

func limitSelf(l *Limits) error {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CPU:    uint64(l.CPU.Seconds()),
		unix.RLIMIT_DATA:   l.Memory,
		unix.RLIMIT_NOFILE: l.Files,
		unix.RLIMIT_FSIZE:  l.FileSize,
	} {
		if value == 0 {
			continue
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
}
