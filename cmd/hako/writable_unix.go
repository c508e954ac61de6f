//go:build unix

package main

import "golang.org/x/sys/unix"

// checkAccess asks the system whether this process may make files in a folder.
func checkAccess(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
