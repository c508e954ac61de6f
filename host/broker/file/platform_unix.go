//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"

	wsys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

// nonblock keeps the opening of a pipe that took a file's name from waiting for its other end.
const nonblock = syscall.O_NONBLOCK

var beyondWazero = map[syscall.Errno]wasiErrno{
	syscall.EBUSY:   wasiEBUSY,
	syscall.EDQUOT:  wasiEDQUOT,
	syscall.EFBIG:   wasiEFBIG,
	syscall.EMFILE:  wasiENFILE, // the host's limit, not the guest's
	syscall.EMLINK:  wasiEMLINK,
	syscall.ENFILE:  wasiENFILE,
	syscall.ENOSPC:  wasiENOSPC,
	syscall.ETXTBSY: wasiEBUSY,
	syscall.EXDEV:   wasiEXDEV,
}

// validName reports whether one element of a path can be a name.
func validName(string) bool { return true }

// hardLinks counts the names of an open file.
func hardLinks(_ *os.File, info fs.FileInfo) (uint64, error) { return wsys.NewStat_t(info).Nlink, nil }

// rename moves a name from one open directory to another. os.Root has no rename between two roots, and its own would
// walk both paths again.
func rename(from, to *place) error {
	source, err := from.dir.Open(".")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.dir.Open(".")
	if err != nil {
		return err
	}
	defer target.Close()
	return unix.Renameat(int(source.Fd()), from.name, int(target.Fd()), to.name)
}
