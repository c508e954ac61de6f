// Package backup copies the host's databases away and back, its own and those of plugins, and its audit log.
//
// A backup is a directory with the same layout as the host's own, and a list of its files with their checksums. Each database in it is
// of one moment, and of its own: nothing spans two databases. The audit log is there with its key, so that it can be verified and gone on
// with; the key that encrypts credentials is not.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/internal/database"
)

// listName is the file in a backup that lists the others.
const listName = "backup.json"

// format is the version of the list. Backups of version 1 are without the audit log.
const format = 2

// auditFolder is where the host's audit log lies in its directory.
const auditFolder = "audit"

// ErrNothing says that a directory holds no database.
var ErrNothing = errors.New("there is no database to copy")

// File is one database in a backup, or a file of the audit log.
type File struct {
	// Path is where it lies in the directory, with slashes.
	Path string `json:"path"`
	// Bytes is its size, and SHA256 the hash of its content, hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Audit reports whether the file is one of the audit log.
func (f File) Audit() bool { return path.Dir(f.Path) == auditFolder }

type list struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
}

// Create copies the databases and the audit log in the directory data into the new directory to, while the host uses them, and returns what it copied.
// The directory appears when it is complete, checked and flushed to the disk; if something fails, or ctx ends, there is none. An error
// matches fs.ErrExist if to is there already, and ErrNothing if data holds no database.
func Create(ctx context.Context, data, to string) (_ []File, err error) {
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("backup: %s: %w: name a new directory", to, fs.ErrExist)
	}
	found, err := databases(data)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("backup: %s: %w", data, ErrNothing)
	}
	partial, err := os.MkdirTemp(filepath.Dir(to), ".hako-backup-*")
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup: %w", errors.Join(err, os.RemoveAll(partial)))
		}
	}()
	l := list{Format: format, Created: time.Now().UTC().Truncate(time.Second)}
	// Of the audit log the head comes before the segments: so none is missing of what the head says there is.
	for _, list := range []func(string) ([]string, error){databases, auditHead, auditSegments} {
		paths, err := list(data)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			file, err := copyOut(ctx, data, partial, path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			l.Files = append(l.Files, file)
		}
	}
	if err := writeList(partial, l); err != nil {
		return nil, err
	}
	return l.Files, os.Rename(partial, to)
}

// databases lists the databases in a host's directory, relative to it.
func databases(data string) (paths []string, err error) {
	for _, pattern := range []string{"*.db", filepath.Join(sqlbroker.Folder, "*", "*.db")} {
		found, err := fs.Glob(os.DirFS(data), filepath.ToSlash(pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// auditHead lists the files beside the segments of the audit log.
func auditHead(data string) ([]string, error) {
	return fs.Glob(os.DirFS(data), path.Join(auditFolder, "audit.*[^k]")) // all but the lock
}

// auditSegments lists the segments of the audit log.
func auditSegments(data string) ([]string, error) {
	return fs.Glob(os.DirFS(data), path.Join(auditFolder, "audit-*.jsonl"))
}

func copyOut(ctx context.Context, data, to, name string) (File, error) {
	source, target := filepath.Join(data, filepath.FromSlash(name)), filepath.Join(to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return File{}, err
	}
	var err error
	if isDatabase(name) {
		err = database.Copy(ctx, source, target)
	} else if err = ctx.Err(); err == nil {
		err = copyFile(source, target)
	}
	if err != nil {
		return File{}, err
	}
	return describe(to, name)
}

func isDatabase(name string) bool { return path.Ext(name) == ".db" }

// describe reads a file of a backup.
func describe(dir, path string) (File, error) {
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, file)
	return File{Path: path, Bytes: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

func writeList(dir string, l list) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, listName), append(data, '\n'))
}

// writeSynced writes a new file and flushes it to the disk.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}
