// Package backup copies the host's databases away and back: its own and those of plugins.
//
// A backup is a directory with the same layout as the host's own, and a list of its files with their checksums. Each database in it is
// of one moment, and of its own: nothing spans two databases. The key that encrypts credentials is not in it.
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
	"path/filepath"
	"time"

	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/internal/database"
)

// listName is the file in a backup that lists the others.
const listName = "backup.json"

// format is the version of the list.
const format = 1

// ErrNothing says that a directory holds no database.
var ErrNothing = errors.New("there is no database to copy")

// File is one database in a backup.
type File struct {
	// Path is where it lies in the directory, with slashes.
	Path string `json:"path"`
	// Bytes is its size, and SHA256 the hash of its content, hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type list struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
}

// Create copies the databases in the directory data into the new directory to, while the host uses them, and returns what it copied.
// The directory appears when it is complete, checked and flushed to the disk; if something fails, or ctx ends, there is none. An error
// matches fs.ErrExist if to is there already, and ErrNothing if data holds no database.
func Create(ctx context.Context, data, to string) (_ []File, err error) {
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("backup: %s: %w: name a new directory", to, fs.ErrExist)
	}
	paths, err := databases(data)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if len(paths) == 0 {
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

func copyOut(ctx context.Context, data, to, path string) (File, error) {
	target := filepath.Join(to, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return File{}, err
	}
	if err := database.Copy(ctx, filepath.Join(data, filepath.FromSlash(path)), target); err != nil {
		return File{}, err
	}
	return describe(to, path)
}

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
