// Package wholefile atomically replaces files that others read at the same time.
//
// Write and WriteDurable write to a temporary file first. A process that is killed in between leaves it behind;
// RemoveLeftovers removes such files.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Prefix begins the names of temporary files.
const Prefix = ".hako-new-"

const pattern = Prefix + "*"

// leftoverAge is the age from which on a temporary file is that of an interrupted write.
const leftoverAge = 10 * time.Minute

// Write atomically replaces the file at path: readers see the old or the complete new content. Only this user can read
// the file. It is not flushed to the disk, so readers must validate it or be able to recreate it. After an error, which
// is from package os, the file is unchanged.
func Write(path string, data []byte) error {
	return replace(path, func(temp *os.File) error {
		_, err := temp.Write(data)
		return err
	})
}

// WriteDurable is Write with the permissions mode. After a crash of the machine the file has the old or the new
// content.
func WriteDurable(path string, data []byte, mode fs.FileMode) error {
	err := replace(path, func(temp *os.File) error {
		_, err := temp.Write(data)
		return errors.Join(err, temp.Chmod(mode), temp.Sync())
	})
	if err != nil || runtime.GOOS == "windows" { // which has no call to flush a directory
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Stream atomically replaces the file at path with what write writes. Everybody can read it. After an error the file is
// unchanged.
func Stream(path string, write func(io.Writer) error) error {
	return replace(path, func(temp *os.File) error { return errors.Join(write(temp), temp.Chmod(0o644)) })
}

func replace(path string, write func(temp *os.File) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	err = errors.Join(write(temp), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// RemoveLeftovers removes the temporary files in the directories that are at least 10 minutes old. It passes over
// directories that do not exist.
func RemoveLeftovers(dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !IsTemporary(entry.Name(), pattern) {
				continue
			}
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) >= leftoverAge {
				errs = append(errs, removeIfPresent(filepath.Join(dir, entry.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// removeIfPresent removes a file that another process may remove at the same time.
func removeIfPresent(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
