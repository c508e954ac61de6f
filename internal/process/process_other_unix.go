//go:build unix && !linux

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func dup(from, to int) error { return unix.Dup2(from, to) }

func becomeSubreaper() error { return nil }

// killRest kills the process group, including this process. Processes outside of the group remain; only Linux can find
// them.
func killRest() { _ = syscall.Kill(0, syscall.SIGKILL) }
