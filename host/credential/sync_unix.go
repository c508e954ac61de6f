//go:build unix

package credential

import (
	"errors"
	"os"
)

// syncDir flushes a directory to the disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
