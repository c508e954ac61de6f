package file

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// nonblock is not needed: os.Root refuses the names of devices.
const nonblock = 0

var beyondWazero = map[syscall.Errno]wasiErrno{
	windows.ERROR_TOO_MANY_OPEN_FILES: wasiENFILE,
	windows.ERROR_NOT_SAME_DEVICE:     wasiEXDEV,
	windows.ERROR_SHARING_VIOLATION:   wasiEBUSY,
	windows.ERROR_HANDLE_DISK_FULL:    wasiENOSPC,
	windows.ERROR_DISK_FULL:           wasiENOSPC,
}

// validName reports whether one element of a path can be a name.
func validName(name string) bool { return validWindowsName(name) }

// hardLinks counts the names of an open file.
func hardLinks(f *os.File, _ fs.FileInfo) (uint64, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return uint64(info.NumberOfLinks), err
}

// rename moves a name. The paths are walked again by os.Root, which keeps them inside the mount; only whoever can create
// links on the host could thereby reach what a deny glob hides.
func rename(from, to *place) error { return from.mount.root.Rename(from.path, to.path) }
