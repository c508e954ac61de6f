//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"

	wsys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

// nonblock keeps open from blocking if a pipe has replaced the file.
const nonblock = syscall.O_NONBLOCK

var wasiOnlyErrnos = map[syscall.Errno]wasiErrno{
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

func validName(string) bool { return true }

// hardLinks returns the number of names of an open file.
func hardLinks(_ *os.File, info fs.FileInfo) (uint64, error) { return wsys.NewStat_t(info).Nlink, nil }

// rename moves an entry from one open directory to another. os.Root cannot rename between two roots, and os.Root.Rename
// would walk both paths again.
func rename(from, to *dirEntry) error {
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
