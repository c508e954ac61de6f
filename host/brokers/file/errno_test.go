package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
)

func TestToErrno(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err      error
		want     sys.Errno
		wasiOnly wasiErrno
	}{
		"the end of a file":  {io.EOF, 0, 0},
		"of this package":    {errReadOnly, sys.EROFS, 0},
		"wrapped":            {fmt.Errorf("what: %w", errHidden), sys.ENOENT, 0},
		"only known to WASI": {wasiEDQUOT, sys.EIO, wasiEDQUOT},
		"of the system": {&fs.PathError{Op: "open", Path: "/host/path",
			Err: syscall.ENOTDIR}, sys.ENOTDIR, 0},
		"of two paths": {&os.LinkError{Op: "rename", Old: "/a", New: "/b",
			Err: syscall.ENOENT}, sys.ENOENT, 0},
		"closed":                  {&fs.PathError{Op: "read", Path: "/host/path", Err: fs.ErrClosed}, sys.EBADF, 0},
		"a path that changes":     {errChanged, sys.EAGAIN, 0},
		"a call whose time is up": {context.DeadlineExceeded, sys.EINTR, 0},
		"unknown":                 {errors.New("something else"), sys.EIO, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, wasiOnly := toErrno(c.err); got != c.want || wasiOnly != c.wasiOnly {
				t.Errorf("%v (%d), want %v (%d)", got, wasiOnly, c.want, c.wasiOnly)
			}
		})
	}
	for host, wasiOnly := range wasiOnlyErrnos {
		if got, number := toErrno(os.NewSyscallError("write", host)); got != sys.EIO || number != wasiOnly {
			t.Errorf("%v: %v (%d), want EIO (%d)", host, got, number, wasiOnly)
		}
	}
}
