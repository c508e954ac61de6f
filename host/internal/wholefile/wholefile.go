// Package wholefile writes files that others read at the same time.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write makes the file at path hold data, in one step: readers see what was there before or all of the new content. Its mode is
// that of a temporary file, for this user alone. It is not flushed to the disk: what is written this way is checked when it is
// read, or can be made again. The error is from package os; then the file at path is what it was.
func Write(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
