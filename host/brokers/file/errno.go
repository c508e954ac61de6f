package file

import (
	"context"
	"errors"
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// wasiErrno is an errno of WASI preview 1 that wazero's sys.Errno lacks.
type wasiErrno uint32

// The numbers are those of the errno type in WASI snapshot preview 1.
const (
	wasiEBUSY  wasiErrno = 10
	wasiEDQUOT wasiErrno = 19
	wasiEFBIG  wasiErrno = 22
	wasiEMFILE wasiErrno = 33
	wasiEMLINK wasiErrno = 34
	wasiENFILE wasiErrno = 41
	wasiENOSPC wasiErrno = 51
	wasiEXDEV  wasiErrno = 75
)

func (e wasiErrno) Error() string { return "errno of WASI that wazero does not know" }

// Errors of this package's own rules.
const (
	errEscapes  = sys.EPERM  // the path leaves the mount
	errLink     = sys.EPERM  // guests may not create links
	errSpecial  = sys.EACCES // not a regular file or directory
	errThrough  = sys.EACCES // writing through a symbolic link
	errShared   = sys.EACCES // writing to a file with another hard link or an executable bit
	errHidden   = sys.ENOENT // under a deny glob
	errReadOnly = sys.EROFS
)

// errChanged reports that a directory entry changed between two system calls.
var errChanged = errors.New("the path changed during the walk")

// hostErrno translates an error of the operating system.
func hostErrno(err error) (sys.Errno, wasiErrno) {
	var host syscall.Errno
	switch {
	case errors.As(err, &host):
		if wasiOnly, ok := wasiOnlyErrnos[host]; ok {
			return sys.EIO, wasiOnly
		}
		return sys.UnwrapOSError(host), 0
	case errors.Is(err, errChanged):
		return sys.EAGAIN, 0
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return sys.EINTR, 0
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return sys.UnwrapOSError(err), 0
}
