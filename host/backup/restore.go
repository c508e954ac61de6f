package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/internal/database"
	"github.com/hako-run/hako/internal/strictjson"
)

// maxList is the largest list of files, in bytes.
const maxList = 64 << 20

// Restore puts what is in the backup from into the host's directory data, which must have neither databases nor an audit log yet, and returns
// it. No host may be using data. All of the backup is checked before. If something fails, data has nothing as before.
//
// An error matches fs.ErrExist if data has something already.
func Restore(ctx context.Context, from, data string) (_ []File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore: %w", err)
		}
	}()
	l, err := readList(from)
	if err != nil {
		return nil, err
	}
	present, err := databases(data)
	if err != nil {
		return nil, err
	}
	log, err := auditSegments(data)
	if err != nil {
		return nil, err
	}
	if present = append(present, log...); len(present) > 0 {
		return nil, fmt.Errorf("%s: %w: stop hako and move it away first", filepath.Join(data, filepath.FromSlash(present[0])), fs.ErrExist)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	partial, err := os.MkdirTemp(data, ".restore-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	for _, file := range l.Files {
		if err := copyIn(ctx, from, partial, file); err != nil {
			return nil, err
		}
	}
	return l.Files, move(l.Files, partial, data)
}

// readList reads a backup's list and checks it.
func readList(dir string) (*list, error) {
	file, err := os.Open(filepath.Join(dir, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no backup, or an incomplete one: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxList))
	if err != nil {
		return nil, err
	}
	l := new(list)
	if err := strictjson.UnmarshalKnown(text, l); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if l.Format < 1 || l.Format > format {
		return nil, fmt.Errorf("%s is of format %d, and this hako reads up to %d: use the version that made it", file.Name(), l.Format, format)
	}
	for _, f := range l.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) != f.Path || !isDatabase(f.Path) && !(f.Audit() && strings.HasPrefix(path.Base(f.Path), "audit")) {
			return nil, fmt.Errorf("%s: %q is not the path of a database, or of a file of the audit log", file.Name(), f.Path)
		}
	}
	return l, nil
}

func copyIn(ctx context.Context, from, to string, file File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := describe(from, file.Path)
	if err != nil {
		return err
	}
	source := filepath.Join(from, filepath.FromSlash(file.Path))
	if found != file {
		return fmt.Errorf("%s is not what was backed up: take another backup", source)
	}
	target := filepath.Join(to, filepath.FromSlash(file.Path))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if err := copyFile(source, target); err != nil {
		return err
	}
	if !isDatabase(file.Path) {
		return nil
	}
	return database.Check(ctx, target)
}

// copyFile makes a new file with the content of another, flushed to the disk.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}

// move puts the files below from where they belong below to. It undoes what it did if it fails.
func move(files []File, from, to string) (err error) {
	var moved []string
	defer func() {
		if err != nil {
			for _, name := range moved {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	for _, file := range files {
		name := filepath.FromSlash(file.Path)
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(from, name), target); err != nil {
			return err
		}
		moved = append(moved, target)
	}
	return nil
}
