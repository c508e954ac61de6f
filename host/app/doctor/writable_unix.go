//go:build unix

package doctor

import "golang.org/x/sys/unix"

// checkAccess returns an error if this process may not create files in a folder.
func checkAccess(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
