// Package scratch makes temporary directories that are also removed when their process is killed: New first removes
// those of the same kind whose processes have ended.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/hako-run/hako/internal/wholefile"
)

// lockName is the file in a directory that its process holds locked. The system unlocks it when the process ends.
const lockName = ".lock"

// minAge is the age from which an unlocked directory is a leftover. Before, its process may not have locked it yet.
const minAge = time.Minute

// Dir is a temporary directory, readable by this user alone.
type Dir struct {
	Path string
	lock *flock.Flock
}

// swept has the patterns, with their parents, whose leftovers this process has removed.
var swept sync.Map

// New makes a directory in parent, or in os.TempDir if parent is empty. kind begins its name. The first call with a
// parent and kind removes the leftovers of processes that ended without Remove.
//
// An error is that of the file system. New is safe for concurrent use.
func New(parent, kind string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	pattern := kind + "-*"
	if _, done := swept.LoadOrStore(filepath.Join(parent, pattern), true); !done {
		removeLeftovers(parent, pattern)
	}
	path, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, lock: flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))}
	if err := d.lock.Lock(); err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

// Remove deletes the directory with everything in it, also parts that were made unreadable.
func (d *Dir) Remove() error {
	unlocked := d.lock.Close() // before: Windows does not delete open files
	err := os.RemoveAll(d.Path)
	if err != nil {
		_ = filepath.WalkDir(d.Path, func(path string, entry fs.DirEntry, _ error) error {
			if entry != nil && entry.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(d.Path)
	}
	return errors.Join(unlocked, err)
}

// removeLeftovers removes the directories of processes of this user that have ended. In a shared directory others can
// make directories with such names, and exchange what is in them for links during the removal. It ignores errors: a
// leftover does no harm.
func removeLeftovers(parent, pattern string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		if !entry.IsDir() || !wholefile.IsTemporary(entry.Name(), pattern) {
			continue
		}
		dir, err := entry.Info()
		if err != nil || !isOwn(dir) {
			continue
		}
		path := filepath.Join(parent, entry.Name())
		info, err := os.Lstat(filepath.Join(path, lockName))
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < minAge {
			continue
		}
		d := &Dir{Path: path, lock: flock.New(filepath.Join(path, lockName))}
		if locked, err := d.lock.TryLock(); locked && err == nil {
			_ = d.Remove()
		}
	}
}
