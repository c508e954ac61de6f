package audit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// processLock is an exclusive lock of all processes that write the log: a lock on a file (flock, or LockFileEx on
// Windows). Unlike flock.Flock it keeps the file open while it is unlocked, because opening it took a fifth of the time
// of a record. The zero value with a path is unlocked. It is not safe for concurrent use.
type processLock struct {
	path string
	file *os.File
	info os.FileInfo // of file
}

// lockRetry is the interval at which a lock that another process holds is tried again.
const lockRetry = time.Millisecond

// lock waits until no other process holds the lock, or fails when ctx ends. The error matches fs.ErrNotExist if the
// directory is gone.
func (l *processLock) lock(ctx context.Context) error {
	for {
		locked, err := l.tryLock()
		if locked || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}

// tryLock takes the lock and reports true, unless another process holds it.
func (l *processLock) tryLock() (locked bool, err error) {
	for {
		if l.file == nil {
			if err := l.open(); err != nil {
				return false, err
			}
		}
		if locked, err = tryLockFile(l.file); err != nil || !locked {
			return false, err
		}
		// If somebody has removed or replaced the file, other processes lock the one that is there now.
		there, err := os.Stat(l.path)
		if err == nil && os.SameFile(l.info, there) {
			return true, nil
		}
		if err = errors.Join(ignoreNotExist(err), l.close()); err != nil {
			return false, err
		}
	}
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// open opens the file for writing, which network file systems demand for an exclusive lock.
func (l *processLock) open() (err error) {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if l.info, err = file.Stat(); err != nil {
		return errors.Join(err, file.Close())
	}
	l.file = file
	return nil
}

// close closes the file, which gives up the lock.
func (l *processLock) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
