package compile

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapCode maps a part of the file over the memory for code. It fails if the part does not begin at a page.
func mapCode(file *os.File, offset int64, code []byte) error {
	_, err := unix.MmapPtr(int(file.Fd()), offset, unsafe.Pointer(unsafe.SliceData(code)), uintptr(len(code)),
		unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}
