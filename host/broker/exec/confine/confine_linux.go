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

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// namespaces are those that the child gets at its start. What watches over the command has one of processes besides.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET

// Support is what this machine's kernel can do to hold a command.
type Support struct {
	// Landlock is the version of Landlock's interface, 0 without it.
	Landlock int
	// Namespaces says that processes can have namespaces of their own without privileges.
	Namespaces bool
	// Filter says that the system calls of processes can be filtered.
	Filter bool
}

// Check finds out what this machine can do, once.
func Check() Support { return check() }

var check = sync.OnceValue(func() Support {
	s := Support{Namespaces: tryNamespaces(), Filter: hasFilter()}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == 0 {
		s.Landlock = int(version)
	}
	return s
})

// tryNamespaces starts a process as the child does; see probe.
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
	command.SysProcAttr = attributes(namespaces | unix.CLONE_NEWPID)
	return command.Run() == nil
}

// Versions of Landlock's interface that are needed: with namespaces the one that holds files that move between directories; without, the
// one that holds truncation.
const (
	landlockWithNamespaces = 2
	landlockAlone          = 3
)

// Confines reports whether a command can be held to its paths and to no network.
func (s Support) Confines() bool {
	return s.Filter && (s.Landlock >= landlockAlone || s.Landlock >= landlockWithNamespaces && s.Namespaces)
}

// ConfinesNetwork reports whether a command can be held to some hosts: only in a network of its own.
func (s Support) ConfinesNetwork() bool { return s.Confines() && s.Namespaces }

// Missing says what the machine lacks, and what to do. It is empty if there is nothing that it lacks.
func (s Support) Missing() string {
	if !ready.Load() {
		return ErrNoMain.Error()
	}
	var missing []string
	if !s.Filter {
		missing = append(missing, "the kernel has no filter for system calls (seccomp), or hako none for this processor")
	}
	switch {
	case s.Landlock == 0:
		missing = append(missing, "the kernel has no Landlock (Linux 5.19 and newer, with landlock among the lsm= modules)")
	case s.Landlock < landlockAlone && !s.Namespaces, s.Landlock < landlockWithNamespaces:
		missing = append(missing, fmt.Sprintf("the kernel's Landlock is version %d: 2 is needed (Linux 5.19), 3 without namespaces (Linux 6.2)", s.Landlock))
	}
	if !s.Namespaces {
		missing = append(missing, "processes cannot have namespaces of their own (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, AppArmor's restriction of them, or a container's seccomp profile)")
	}
	return strings.Join(missing, "; ")
}

// idsVariable tells a process in a namespace of users who it is outside.
const idsVariable = "HAKO_IDS"

func ids() string { return fmt.Sprintf("%s=%d %d", idsVariable, os.Getuid(), os.Getgid()) }

// mapSelf makes the user and the group those that they are outside, in the namespace of users that this process is in. The process that
// started it cannot do that: where it is sealed (internal/process), files of a child that has not become another program belong to root.
func mapSelf() error {
	var uid, gid int
	if _, err := fmt.Sscan(os.Getenv(idsVariable), &uid, &gid); err != nil {
		return fmt.Errorf("%s: %w", idsVariable, err)
	}
	for _, f := range []struct{ name, text string }{
		{"setgroups", "deny"}, {"gid_map", fmt.Sprintf("%d %d 1", gid, gid)}, {"uid_map", fmt.Sprintf("%d %d 1", uid, uid)},
	} {
		if err := os.WriteFile("/proc/self/"+f.name, []byte(f.text), 0); err != nil {
			return err
		}
	}
	return nil
}

// attributes are those of a process in namespaces of its own, in which it may make further ones and give up rights for good. It calls
// mapSelf first.
func attributes(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid:     true,
		Cloneflags:  flags,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP},
	}
}

// separate makes the child the first of a group of processes and puts it into namespaces of its own, as far as the machine has them.
func separate(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if Check().Namespaces {
		command.SysProcAttr = attributes(namespaces)
	}
}

// kill ends the child and its group of processes. In a namespace the kernel ends all that is in it.
func kill(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// socketPair is a connection between host and child.
func socketPair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

// memoryFile returns a file without a name that holds data.
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

// confineSelf gives up all rights but those of the order, for this process and all that it starts. self is this program, to be started
// once more.
func confineSelf(o *order, self string) error {
	if err := limitSelf(&o.Limits); err != nil {
		return err
	}
	if o.Namespaces {
		if err := mapSelf(); err != nil {
			return err
		}
		if err := seal(o.Write, o.Replace); err != nil {
			return err
		}
	}
	// The newest version of the rules that the kernel has; with Loose none is fine too. Connections need none: they end in a network of the
	// command's own, or the command can make no sockets.
	config := landlock.MustConfig(landlock.V7.HandledAccessFS, landlock.V7.Scoped)
	return config.BestEffort().Restrict(append(rules(o.Spec), access(self, readFile|execute))...)
}

// isolate puts the process that watches over the command into a namespace of processes, in which it is the first: all others end with
// it. It is to be started by this goroutine, which is locked to its thread, and will have no rights in the other namespaces.
func isolate(command *exec.Cmd, o *order) error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !o.Namespaces {
		return nil
	}
	command.SysProcAttr.Cloneflags = unix.CLONE_NEWPID
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		// Root alone could get it back. The kernel may know fewer capabilities than this program.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return os.NewSyscallError("prctl", err)
		}
	}
	// Root's programs also get what is inheritable.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	return os.NewSyscallError("capset", unix.Capset(&header, &sets[0]))
}

// limitProcesses bounds the processes in this process's namespace of users. Outside of one all processes of the user would count.
func limitProcesses(o *order) error {
	if o.Limits.Processes == 0 || !o.Namespaces {
		return nil
	}
	return os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: o.Limits.Processes, Max: o.Limits.Processes}))
}

// keepFilesFromPrograms keeps this process's open files, also those that it was started with, from the programs that it starts.
func keepFilesFromPrograms() error {
	return os.NewSyscallError("close_range", unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}

// probe is what a process does to find out whether the child could give up rights.
func probe() int {
	if mapSelf() != nil || bringUpLoopback(nil) != nil || seal(nil, nil) != nil {
		return 1
	}
	return 0
}

// Rights of Landlock's.
const (
	execute  = unix.LANDLOCK_ACCESS_FS_EXECUTE
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	// change is everything but executing and making devices.
	change = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | readDir | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// rules are Landlock's for spec.
func rules(spec *Spec) []landlock.Rule {
	rules := []landlock.Rule{landlock.RWFiles("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full").IgnoreIfMissing()}
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

// access gives rights on a file, or on a directory and what is below it.
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
