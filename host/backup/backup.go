// Package backup copies the host's databases away and back, its own and those of plugins, and its audit log.
//
// A backup is a directory with the same layout as the host's own, and a list of its files with their checksums. Each database in it is
// of one moment, and of its own: nothing spans two databases. The audit log is there with its key, so that it can be verified and gone on
// with; the key that encrypts credentials is not.
package backup

import (
	"bytes"
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
	"slices"
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
	found, err := databasePaths.in(data)
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
	for _, list := range []patterns{databasePaths, auditHead, auditSegments} {
		paths, err := list.in(data)
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

// patterns are those of the paths of one kind of files, for path.Match.
type patterns []string

// Of a host's directory a backup has three kinds of files. The fourth is what SQLite keeps beside a database: it would take a leftover of
// another database for this one's.
var (
	databasePaths = patterns{"*.db", path.Join(sqlbroker.Folder, "*", "*.db")}
	auditHead     = patterns{path.Join(auditFolder, "audit.*[^k]")} // all but the lock
	auditSegments = patterns{path.Join(auditFolder, "audit-*.jsonl")}
	leftovers     = patterns{"*.db-*", path.Join(sqlbroker.Folder, "*", "*.db-*")}
)

// in lists the files in a host's directory, relative to it.
func (list patterns) in(data string) (paths []string, err error) {
	for _, pattern := range list {
		found, err := fs.Glob(os.DirFS(data), pattern)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

func (list patterns) match(name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func copyOut(ctx context.Context, data, to, name string) (File, error) {
	source, target := filepath.Join(data, filepath.FromSlash(name)), filepath.Join(to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return File{}, err
	}
	var err error
	if isDatabase(name) {
		err = database.Copy(ctx, source, target)
	} else {
		err = copyFile(ctx, source, target)
	}
	if err != nil {
		return File{}, err
	}
	return describe(ctx, to, name)
}

func isDatabase(name string) bool { return path.Ext(name) == ".db" }

// describe reads a file of a backup.
func describe(ctx context.Context, dir, path string) (File, error) {
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, &reader{ctx, file})
	return File{Path: path, Bytes: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

func writeList(dir string, l list) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return writeFrom(bytes.NewReader(append(data, '\n')), filepath.Join(dir, listName))
}

// copyFile makes a new file with the content of another, flushed to the disk.
func copyFile(ctx context.Context, from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return writeFrom(&reader{ctx, source}, to)
}

// writeFrom makes a new file of what r reads, flushed to the disk.
func writeFrom(r io.Reader, to string) error {
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, r)
	return errors.Join(err, target.Sync(), target.Close())
}

// reader reads until its context ends.
type reader struct {
	ctx  context.Context // of one copy
	from io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
