package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Landlock restricts paths, and the network namespace restricts hosts. This seccomp filter covers the rest: Unix
// sockets of other programs (such as a container engine), protocols that network namespaces do not isolate, and system
// calls that reach into other processes or the kernel and that no command needs.

// architectures are the supported ones: little-endian, with one system call to create sockets.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
	"ppc64le": unix.AUDIT_ARCH_PPC64LE,
}

// forbidden are the system calls that fail with EPERM.
var forbidden = []uint32{
	// access to other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE,
	// ways around this filter, or deep into the kernel
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_BPF,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_FANOTIFY_INIT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG,
	// ways around Landlock: executing files without a path, and watching files without the right to read them
	unix.SYS_MEMFD_CREATE, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH,
	// other namespaces and file systems
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	// the machine as a whole
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// metadata are the system calls that change modes, owners, times and attributes of files. They are forbidden if the
// file system could not be made read-only.
var metadata = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR,
	unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

// sharedIPC are the system calls for System V IPC and POSIX message queues. They are forbidden without an IPC
// namespace, because they reach those of all processes of hako's user.
var sharedIPC = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// semop has the numbers of semop and semtimedop, which package unix lacks on some processors. On ppc64le the first is
// ipc, which makes all calls of System V IPC.
var semop = map[string][]uint32{"amd64": {65, 220}, "arm64": {193, 192}, "riscv64": {193, 192}, "ppc64le": {117, 392}}

// newNamespaces are the flags of clone that create namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets in struct seccomp_data.
const (
	offCall = 0
	offArch = 4
	offArg0 = 16
	offArg1 = 24
	offArg2 = 32
)

// Results of the filter.
var (
	pass      = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	kills     = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	refuses   = returnErrno(unix.EPERM)
	noCall    = returnErrno(unix.ENOSYS)
	noSockets = returnErrno(unix.EAFNOSUPPORT)
)

func returnErrno(errno unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// instructions returns the filter.
func instructions(architecture uint32, forbidden []uint32) []bpf.Instruction {
	load := func(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: 4} }
	unless := func(value uint32, skip uint8) bpf.Instruction {
		return bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: skip}
	}
	list := []bpf.Instruction{
		load(offArch), bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1}, kills,
		load(offCall),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 1 << 30, SkipTrue: 1}, noCall, // x32
	}
	for _, call := range forbidden {
		list = append(list, unless(call, 1), refuses)
	}
	return append(list,
		unless(unix.SYS_CLONE3, 1), noCall, // a filter cannot read its flags; all libraries fall back to clone

		unless(unix.SYS_CLONE, 4),
		load(offArg0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newNamespaces, SkipTrue: 1}, refuses,
		pass,

		// Only stream and seqpacket pairs: a datagram socket of a pair (SOCK_RAW is one too) can send to any socket
		// with a path.
		unless(unix.SYS_SOCKETPAIR, 8),
		load(offArg0), unless(unix.AF_UNIX, 5),
		load(offArg1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1}, unless(unix.SOCK_SEQPACKET, 1),
		pass, noSockets,

		unless(unix.SYS_SOCKET, 11),
		load(offArg0),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1}, unless(unix.AF_INET6, 9),
		load(offArg1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1}, unless(unix.SOCK_DGRAM, 5),
		load(offArg2),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP,
			SkipTrue: 1}, unless(unix.IPPROTO_UDP, 1),
		pass, noSockets,
	)
}

var errArchitecture = errors.New("hako has no seccomp filter for the processor " + runtime.GOARCH)

// filterSelf installs the filter of the spec.
func filterSelf(o *childSpec) error {
	calls := slices.Concat(forbidden, oldForbidden)
	if !o.Namespaces {
		calls = slices.Concat(calls, metadata, oldMetadata, sharedIPC, semop[runtime.GOARCH])
	}
	if len(o.Listen) == 0 {
		calls = append(calls, unix.SYS_SOCKET)
	}
	return install(calls)
}

// install installs a filter for all threads of this process and its descendants. It forbids calls besides those that
// are always forbidden.
func install(calls []uint32) error {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		return errArchitecture
	}
	raw, err := bpf.Assemble(instructions(architecture, calls))
	if err != nil {
		return fmt.Errorf("install the seccomp filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return os.NewSyscallError("seccomp", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d keeps out", thread)
	}
	return nil
}

// hasFilter reports whether the kernel supports seccomp filters.
func hasFilter() bool {
	_, known := architectures[runtime.GOARCH]
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return known && errno == 0
}
