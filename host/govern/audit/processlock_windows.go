package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedBytes is the length of the locked range, which may exceed the file.
const lockedBytes = 1

func tryLockFile(file *os.File) (locked bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, lockedBytes, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func (l *processLock) unlock() error {
	return windows.UnlockFileEx(windows.Handle(l.file.Fd()), 0, lockedBytes, 0, new(windows.Overlapped))
}
