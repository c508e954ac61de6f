package audit

import (
	"context"
	"errors"
	"fmt"
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

// lockRetry is the pause before a lock that another process holds is tried again. It doubles up to lockRetryMost.
const (
	lockRetry     = time.Millisecond
	lockRetryMost = 10 * time.Millisecond
)

// lock waits until it holds the lock, or fails with the cause when ctx ends. The error matches fs.ErrNotExist if the
// directory is gone.
func (l *processLock) lock(ctx context.Context) error {
	for pause := lockRetry; ; pause = min(2*pause, lockRetryMost) {
		locked, err := l.tryLock()
		if locked || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process holds %s: end it if it stands still: %w", l.path, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// tryLock takes the lock and reports true, unless another process holds it or the file has been replaced.
func (l *processLock) tryLock() (locked bool, err error) {
	if l.file == nil {
		if err := l.open(); err != nil {
			return false, err
		}
	}
	if locked, err = tryLockFile(l.file); err != nil || !locked {
		return false, err
	}
	there, err := os.Stat(l.path)
	if err == nil && os.SameFile(l.info, there) {
		return true, nil
	}
	return false, l.close() // other processes lock the file that is there now: the next attempt opens that
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
