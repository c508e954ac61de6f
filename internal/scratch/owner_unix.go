//go:build unix

package scratch

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file belongs to this user.
func isOwn(file fs.FileInfo) bool {
	status, ok := file.Sys().(*syscall.Stat_t)
	return ok && int(status.Uid) == os.Geteuid()
}
