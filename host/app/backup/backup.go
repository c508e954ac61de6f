// Package backup backs up and restores the host's databases, those of plugins, and the audit log.
//
// Create makes a backup of a running host; Restore copies one into a new data directory. A backup is a directory with
// the layout of the data directory and a list of its files with checksums. Each database is consistent in itself, but
// different databases are copied at different moments. The backup contains the audit log's signing key, so that the log
// can be verified and continued, but not the key that encrypts credentials.
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
	"strings"
	"time"

	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/store"
)

// listName is the name of the list of files.
const listName = "backup.json"

// format is the version of the list. Version 1 has no audit log.
const format = 2

// auditFolder is the folder of the audit log in the data directory.
const auditFolder = "audit"

// ErrNothing means that a directory has no database.
var ErrNothing = errors.New("there is no database to copy")

// File is a database or a file of the audit log in a backup.
type File struct {
	// Path is relative to the directory, with slashes.
	Path string `json:"path"`
	// Bytes is the size, and SHA256 the hash of the content in hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// CheckStore fails for a store that is a database of PostgreSQL, which has its own tools for that.
func CheckStore(at string) error {
	if !store.IsURL(at) {
		return nil
	}
	return fmt.Errorf("hako's state is in the database %s: copy that with pg_dump --format=custom, put it back with "+
		"pg_restore, and keep audit.key and secrets.key elsewhere (docs/store.md)", store.Redacted(at))
}

// Title names the database of the file for people.
func (f File) Title() string {
	dir, name := path.Split(f.Path)
	plugin, ok := strings.CutPrefix(path.Clean(dir), sqlbroker.Folder+"/")
	tenant, known := sqlbroker.Tenant(name)
	switch {
	case !ok || !known:
		return f.Path
	case tenant == "":
		return "plugin " + plugin
	}
	return "plugin " + plugin + ", tenant " + tenant
}

// Audit reports whether the file belongs to the audit log.
func (f File) Audit() bool { return path.Dir(f.Path) == auditFolder }

type list struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
}

// Create copies the databases and the audit log in data into the new directory to and returns the files copied. The
// host may be running. The directory appears when it is complete, checked and flushed to disk; on an error, or when ctx
// ends, nothing remains. An error matches fs.ErrExist if to exists, and ErrNothing if data has no database.
func Create(ctx context.Context, data, to string) (_ []File, err error) {
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("backup: %s: %w: name a new directory", to, fs.ErrExist)
	}
	found, err := databasePaths.glob(data)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("backup: %s: %w", data, ErrNothing)
	}
	removeUnfinished(filepath.Dir(to), backupPattern)
	partial, err := os.MkdirTemp(filepath.Dir(to), backupPattern)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup: %w", errors.Join(err, os.RemoveAll(partial)))
		}
	}()
	l := list{Format: format, Created: time.Now().UTC().Truncate(time.Second)}
	// The head of the audit log is copied before the segments, so that no segment listed in the head is missing.
	for _, list := range []patterns{databasePaths, auditHead, auditSegments} {
		paths, err := list.glob(data)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			file, err := copyOut(ctx, data, partial, path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed in the meantime
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

// patterns has path.Match patterns for one kind of files.
type patterns []string

// A backup has three kinds of files. The fourth, SQLite's files beside a database, must not exist on restore: SQLite
// would apply a leftover of another database.
var (
	databasePaths = patterns{"*.db", path.Join(sqlbroker.Folder, "*", "*.db")}
	auditHead     = patterns{path.Join(auditFolder, "audit.*[^k]")} // all but the lock
	auditSegments = patterns{path.Join(auditFolder, "audit-*.jsonl")}
	leftovers     = patterns{"*.db-*", path.Join(sqlbroker.Folder, "*", "*.db-*")}
)

// glob lists the matching files in a data directory, relative to it.
func (list patterns) glob(data string) (paths []string, err error) {
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

// describe returns the size and the checksum of a file.
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

// copyFile copies a file to a new one and flushes it to disk.
func copyFile(ctx context.Context, from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return writeFrom(&reader{ctx, source}, to)
}

// writeFrom writes r to a new file and flushes it to disk.
func writeFrom(r io.Reader, to string) error {
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, r)
	return errors.Join(err, target.Sync(), target.Close())
}

// reader fails when its context has ended.
type reader struct {
	ctx  context.Context // the context of one copy
	from io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
