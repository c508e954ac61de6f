//go:build unix

package httpserver

import "golang.org/x/sys/unix"

// connectionLimit leaves three quarters of the files that the process may open to everything else.
func connectionLimit() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return maxConnections
	}
	return int(min(maxConnections, max(uint64(files.Cur)/4, 16)))
}
