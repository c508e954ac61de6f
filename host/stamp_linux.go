package host

import (
	"io/fs"
	"syscall"
)

// identify returns when the file's status changed last, and its inode.
func identify(info fs.FileInfo) (changed int64, inode uint64) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano(), stat.Ino
	}
	return 0, 0
}
