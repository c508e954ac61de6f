//go:build linux

package confine

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// TestFilter runs the filter on system calls.
func TestFilter(t *testing.T) {
	t.Parallel()
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		testprogram.Missing(t, errArchitecture.Error())
	}
	const eperm, enosys, eafnosupport = unix.SECCOMP_RET_ERRNO | 1, unix.SECCOMP_RET_ERRNO | 38,
		unix.SECCOMP_RET_ERRNO | 97
	for _, test := range []struct {
		name         string
		architecture uint32
		call         uint32
		arguments    [3]uint32
		want         uint32
		unsealed     uint32 // result for unsealed file systems, if different
	}{
		{name: "read", call: unix.SYS_READ, want: unix.SECCOMP_RET_ALLOW},
		{name: "another architecture", architecture: 1, call: unix.SYS_READ, want: unix.SECCOMP_RET_KILL_PROCESS},
		{name: "x32", call: 1<<30 | unix.SYS_READ, want: enosys},
		{name: "ptrace", call: unix.SYS_PTRACE, want: eperm},
		{name: "the last one", call: unix.SYS_SETDOMAINNAME, want: eperm},
		{name: "clone3", call: unix.SYS_CLONE3, want: enosys},
		{name: "a thread", call: unix.SYS_CLONE, arguments: [3]uint32{unix.CLONE_VM | unix.CLONE_THREAD},
			want: unix.SECCOMP_RET_ALLOW},
		{name: "a namespace", call: unix.SYS_CLONE, arguments: [3]uint32{unix.CLONE_VM | unix.CLONE_NEWNS},
			want: eperm},
		{name: "TCP", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET, unix.SOCK_STREAM, 0},
			want: unix.SECCOMP_RET_ALLOW},
		{name: "TCP by name", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET6, unix.SOCK_STREAM,
			unix.IPPROTO_TCP}, want: unix.SECCOMP_RET_ALLOW},
		{name: "UDP", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP},
			want: unix.SECCOMP_RET_ALLOW},
		{name: "multipath TCP", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET, unix.SOCK_STREAM,
			unix.IPPROTO_MPTCP}, want: eafnosupport},
		{name: "a socket with a path", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_UNIX,
			unix.SOCK_STREAM, 0}, want: eafnosupport},
		{name: "a pair", call: unix.SYS_SOCKETPAIR, arguments: [3]uint32{unix.AF_UNIX,
			unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, want: unix.SECCOMP_RET_ALLOW},
		{name: "a raw socket", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET, unix.SOCK_RAW,
			unix.IPPROTO_TCP}, want: eafnosupport},
		{name: "packets", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET,
			unix.SOCK_PACKET, 0}, want: eafnosupport},
		{name: "ping", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET, unix.SOCK_DGRAM,
			unix.IPPROTO_ICMP}, want: eafnosupport},
		{name: "UDP with flags", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_INET,
			unix.SOCK_DGRAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC}, want: unix.SECCOMP_RET_ALLOW},
		{name: "the hypervisor", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_VSOCK,
			unix.SOCK_STREAM, 0}, want: eafnosupport},
		{name: "netlink", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_NETLINK,
			unix.SOCK_RAW, 0}, want: eafnosupport},
		{name: "ciphers of the kernel", call: unix.SYS_SOCKET, arguments: [3]uint32{unix.AF_ALG,
			unix.SOCK_SEQPACKET, 0}, want: eafnosupport},
		{name: "a file without a path", call: unix.SYS_MEMFD_CREATE, want: eperm},
		{name: "watching files", call: unix.SYS_INOTIFY_INIT1, want: eperm},
		{name: "another call after those for sockets", call: unix.SYS_SENDTO, want: unix.SECCOMP_RET_ALLOW},
		{name: "a pair of packets", call: unix.SYS_SOCKETPAIR, arguments: [3]uint32{unix.AF_UNIX, unix.SOCK_SEQPACKET},
			want: unix.SECCOMP_RET_ALLOW},
		{name: "a raw pair", call: unix.SYS_SOCKETPAIR, arguments: [3]uint32{unix.AF_UNIX,
			unix.SOCK_RAW}, want: eafnosupport},
		{name: "a pair of another family", call: unix.SYS_SOCKETPAIR, arguments: [3]uint32{unix.AF_TIPC,
			unix.SOCK_STREAM}, want: eafnosupport},
		{name: "a pair for datagrams", call: unix.SYS_SOCKETPAIR, arguments: [3]uint32{unix.AF_UNIX,
			unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, want: eafnosupport},
		{name: "a mode", call: unix.SYS_FCHMODAT, want: unix.SECCOMP_RET_ALLOW, unsealed: eperm},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.architecture == 0 {
				test.architecture = architecture
			}
			if got := filtered(t, instructions(architecture, forbidden), test.architecture, test.call,
				test.arguments); got != test.want {
				t.Errorf("%#x, want %#x", got, test.want)
			}
			if test.unsealed == 0 {
				test.unsealed = test.want
			}
			strict := instructions(architecture, slices.Concat(forbidden, metadata, oldMetadata))
			if got := filtered(t, strict, test.architecture, test.call, test.arguments); got != test.unsealed {
				t.Errorf("where the file system is not read-only: %#x, want %#x", got, test.unsealed)
			}
		})
	}
}

// filtered returns the result of the filter. The VM of package bpf reads big-endian data.
func filtered(t *testing.T, filter []bpf.Instruction, architecture, call uint32, arguments [3]uint32) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filter)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offCall:], call)
	binary.BigEndian.PutUint32(data[offArch:], architecture)
	for i, offset := range []int{offArg0, offArg1, offArg2} {
		binary.BigEndian.PutUint32(data[offset:], arguments[i])
	}
	verdict, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}
