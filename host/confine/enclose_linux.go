package confine

import (
	"errors"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// Enclose restricts this process irrevocably, with all its threads, as far as the kernel supports that: it may only
// read and change files below dir, has no network and cannot start programs.
func Enclose(dir string) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := landlock.V7.BestEffort().Restrict(landlock.PathAccess(change, dir)); err != nil {
		return err
	}
	calls := slices.Concat(forbidden, metadata, oldMetadata, []uint32{unix.SYS_SOCKET, unix.SYS_EXECVE,
		unix.SYS_EXECVEAT, unix.SYS_KILL, unix.SYS_PIDFD_SEND_SIGNAL})
	if err := install(calls); err != nil && !errors.Is(err, errArchitecture) && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}
