// Package wholefile atomically replaces files that others read at the same time.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write atomically replaces the file at path: readers see the old or the complete new content. Only this user can read
// the file. It is not flushed to the disk, so readers must validate it or be able to recreate it. After an error, which
// is from package os, the file is unchanged.
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
