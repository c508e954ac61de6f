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

// Refusals of this package, in the order in which they are documented there.
const (
	errEscapes  = sys.EPERM  // the path leads out of the mount
	errLink     = sys.EPERM  // guests create no links
	errSpecial  = sys.EACCES // neither a regular file nor a directory
	errThrough  = sys.EACCES // writing through a symbolic link
	errShared   = sys.EACCES // writing to a file with another hard link or an executable bit
	errHidden   = sys.ENOENT // under a deny glob
	errReadOnly = sys.EROFS
)

// errChanged says that a name led somewhere else from one look to the next.
var errChanged = errors.New("the path changed while it was walked")

// hostErrno translates an error of the operating system.
func hostErrno(err error) (sys.Errno, wasiErrno) {
	var host syscall.Errno
	switch {
	case errors.As(err, &host):
		if beyond, ok := beyondWazero[host]; ok {
			return sys.EIO, beyond
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
