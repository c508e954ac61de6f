package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hako-run/hako/internal/wholefile"
)

// Patterns of the names of the temporary directories of Create and Restore.
const (
	backupPattern  = ".hako-backup-unfinished-*"
	restorePattern = ".restore-*"
)

// movingName is a file in the temporary directory of a Restore that has begun to move files to their places.
const movingName = "moving"

// unfinishedAge is the time without a change after which a temporary directory is removed.
const unfinishedAge = 24 * time.Hour

// ErrUnfinished means that a Restore was killed after it had put some of the files in place.
var ErrUnfinished = errors.New("the restore was interrupted, so the databases are incomplete")

// CheckRestored returns an error that matches ErrUnfinished if data has only a part of a backup, because a Restore was
// killed. It removes what a Restore has left that was killed before it changed anything, once it is a day old.
func CheckRestored(data string) error {
	for _, dir := range temporaries(data, restorePattern) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		isMarker := func(e fs.DirEntry) bool { return e.Name() == movingName }
		// After the last move the marker is alone, apart from directories.
		toMove := func(e fs.DirEntry) bool { return !isMarker(e) && !onlyDirectories(filepath.Join(dir, e.Name())) }
		if slices.ContainsFunc(entries, isMarker) && slices.ContainsFunc(entries, toMove) {
			return fmt.Errorf("%s: %w: move the directory away and restore the backup again", data, ErrUnfinished)
		}
	}
	removeUnfinished(data, restorePattern)
	return nil
}

// onlyDirectories reports whether there is no file at or below path.
func onlyDirectories(path string) bool {
	return filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = fs.ErrExist
		}
		return err
	}) == nil
}

// removeUnfinished removes temporary directories in dir in which nothing has changed for unfinishedAge. It ignores
// errors: a leftover does no harm.
func removeUnfinished(dir, pattern string) {
	for _, path := range temporaries(dir, pattern) {
		if time.Since(lastChange(path)) >= unfinishedAge {
			_ = os.RemoveAll(path)
		}
	}
}

// temporaries returns the directories in dir whose names os.MkdirTemp made from pattern.
func temporaries(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir) // without a directory there are none
	for _, entry := range entries {
		if entry.IsDir() && wholefile.IsTemporary(entry.Name(), pattern) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths
}

// lastChange returns when a file in the directory was changed last. It is now if that cannot be read.
func lastChange(dir string) (last time.Time) {
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	if err != nil {
		return time.Now()
	}
	return last
}
