//go:build !linux

package host

import "io/fs"

// identify returns zeros: size and time of modification have to do.
func identify(fs.FileInfo) (changed int64, inode uint64) { return 0, 0 }
