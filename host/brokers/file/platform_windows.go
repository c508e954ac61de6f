package file

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// nonblock is not needed: os.Root refuses the names of devices.
const nonblock = 0

var wasiOnlyErrnos = map[syscall.Errno]wasiErrno{
	windows.ERROR_TOO_MANY_OPEN_FILES: wasiENFILE,
	windows.ERROR_NOT_SAME_DEVICE:     wasiEXDEV,
	windows.ERROR_SHARING_VIOLATION:   wasiEBUSY,
	windows.ERROR_HANDLE_DISK_FULL:    wasiENOSPC,
	windows.ERROR_DISK_FULL:           wasiENOSPC,
}

func validName(name string) bool { return validWindowsName(name) }

// hardLinks returns the number of names of an open file.
func hardLinks(f *os.File, _ fs.FileInfo) (uint64, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return uint64(info.NumberOfLinks), err
}

// rename moves an entry. os.Root walks both paths again and stays inside the mount. A process that can create links on
// the host could use that moment to reach a file that a deny glob hides.
func rename(from, to *dirEntry) error { return from.mount.root.Rename(from.path, to.path) }

// copyAttributes does nothing: a file has the permissions of its directory.
func copyAttributes(_, _ *dirEntry) (lost []string, err error) { return nil, nil }
