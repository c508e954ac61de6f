//go:build unix

package confine

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// duplicate returns another handle of an open file, with the same position.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// signalNumber returns the signal with a name, such as SIGTERM, or -1.
func signalNumber(name string) syscall.Signal {
	if n := unix.SignalNum(name); n != 0 {
		return n
	}
	return -1
}
