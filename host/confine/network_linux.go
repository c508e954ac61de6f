package confine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// passListeners configures this process's network namespace, opens the listeners of the spec and passes them to the
// host.
func passListeners(o *childSpec, network *os.File) error {
	if err := bringUpLoopback(o.Listen); err != nil {
		return fmt.Errorf("the command's network: %w", err)
	}
	files, err := listen(o.Listen)
	if err != nil {
		return fmt.Errorf("the command's network: %w", err)
	}
	if len(files) == 0 {
		return nil
	}
	rights := make([]int, len(files))
	for i, file := range files {
		rights[i] = int(file.Fd())
	}
	if err := unix.Sendmsg(int(network.Fd()), []byte{0}, unix.UnixRights(rights...), nil, 0); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	for _, file := range files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// listen opens a listener on each address. The process ends if it fails.
func listen(addresses []netip.AddrPort) (files []*os.File, err error) {
	for _, address := range addresses {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(address))
		if err != nil {
			return nil, err
		}
		file, err := l.File() // a copy
		if err = errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// Name and index of the loopback interface in every network namespace.
const (
	loopback      = "lo"
	loopbackIndex = 1
)

// bringUpLoopback starts the loopback interface and adds those addresses that it does not have by default.
func bringUpLoopback(addresses []netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(loopback)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return os.NewSyscallError("start the loopback interface", err)
	}
	known := map[netip.Addr]bool{}
	for _, address := range addresses {
		addr := address.Addr()
		if addr.IsLoopback() || known[addr] {
			continue
		}
		known[addr] = true
		if err := addAddress(fd, addr, len(known)); err != nil {
			return fmt.Errorf("add %s to the loopback interface: %w", addr, err)
		}
	}
	return nil
}

// addAddress adds an address to the loopback interface under an alias with the given number.
func addAddress(fd int, addr netip.Addr, number int) error {
	if addr.Is6() {
		return addAddress6(addr)
	}
	request, err := unix.NewIfreq(fmt.Sprintf("%s:%d", loopback, number))
	if err != nil {
		return err
	}
	bytes := addr.As4()
	if err := request.SetInet4Addr(bytes[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request); err != nil {
		return err
	}
	if err := request.SetInet4Addr([]byte{255, 255, 255, 255}); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFNETMASK, request)
}

func addAddress6(addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request := struct { // in6_ifreq
		address [16]byte
		prefix  uint32
		index   int32
	}{addr.As16(), 128, loopbackIndex}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// receiveFiles receives count open files from the child. It returns nil if the child closed its end without sending
// any.
func receiveFiles(ctx context.Context, from *os.File, count int) ([]*os.File, error) {
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, err
	}
	space := make([]byte, unix.CmsgSpace(4*count))
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, _, _, _, failed = unix.Recvmsg(int(fd), make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failed, unix.EAGAIN)
	})
	if err = errors.Join(err, failed); err != nil || n == 0 {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(space)
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(err, errors.New("no listeners"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "listener"))
	}
	return files, nil
}
