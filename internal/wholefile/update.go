package wholefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// LockSuffix is appended to the path of a file for the path of its lock.
const LockSuffix = ".lock"

const lockPoll = 10 * time.Millisecond

// Update replaces the content of the file at path, or of the target of a symbolic link there, with the result of
// change. Updates of the same file by any process run one after the other, under a lock on path + LockSuffix. change
// receives nil if the file does not exist; the new file then has the permissions mode. After a crash of the machine the
// file has the old or the new content. After an error, or with the same content, the file is unchanged.
func Update(ctx context.Context, path string, mode fs.FileMode, change func([]byte) ([]byte, error)) (err error) {
	lock := flock.New(path + LockSuffix)
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(old)
	if err != nil || bytes.Equal(data, old) {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return WriteDurable(path, data, mode)
}
