package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/internal/strictjson"
)

// maxList bounds the list of files, in bytes.
const maxList = 64 << 20

// Restore copies the backup from into the data directory data and returns its files. The directory must not be in use
// and must have neither databases nor an audit log. The whole backup is checked first; on an error data is unchanged.
//
// An error matches fs.ErrExist if data has databases or an audit log.
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
	for _, list := range []patterns{databasePaths, auditSegments, auditHead, leftovers} {
		present, err := list.glob(data)
		if err != nil {
			return nil, err
		}
		if len(present) > 0 {
			return nil, fmt.Errorf("%s: %w: stop hako and move it away first",
				filepath.Join(data, filepath.FromSlash(present[0])), fs.ErrExist)
		}
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if err := CheckRestored(data); err != nil {
		return nil, err
	}
	partial, err := os.MkdirTemp(data, restorePattern)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	for _, file := range l.Files {
		if err := copyIn(ctx, root, partial, file); err != nil {
			return nil, err
		}
	}
	marker := filepath.Join(partial, movingName)
	if err := writeFrom(strings.NewReader(""), marker); err != nil {
		return nil, err
	}
	if err := move(l.Files, partial, data); err != nil {
		return nil, err
	}
	return l.Files, os.Remove(marker)
}

// readList reads and checks a backup's list.
func readList(dir string) (*list, error) {
	name := filepath.Join(dir, listName)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a complete backup: %w", dir, err)
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
		return nil, fmt.Errorf("%s is of format %d, and this hako reads up to %d: use the version that made it",
			file.Name(), l.Format, format)
	}
	seen := map[string]bool{}
	for _, f := range l.Files {
		if !known(f.Path) {
			return nil, fmt.Errorf("%s: %q is not the path of a database, or of a file of the audit log", file.Name(),
				f.Path)
		}
		if folded := strings.ToLower(f.Path); seen[folded] {
			return nil, fmt.Errorf("%s: %q occurs twice", file.Name(), f.Path)
		} else {
			seen[folded] = true
		}
	}
	return l, nil
}

// known reports whether Create could have made a file with this path.
func known(name string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%-_./", r)
	}
	return filepath.IsLocal(filepath.FromSlash(name)) && path.Clean(name) == name &&
		!strings.HasPrefix(name, ".") && !strings.Contains(name, "/.") &&
		!strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) &&
		(databasePaths.match(name) || auditHead.match(name) || auditSegments.match(name))
}

// copyIn copies a file of the backup and checks it. It refuses links, devices and pipes.
func copyIn(ctx context.Context, from *os.Root, to string, file File) error {
	name := filepath.FromSlash(file.Path)
	changed := fmt.Errorf("%s is not what was backed up: take another backup", filepath.Join(from.Name(), name))
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != file.Bytes {
		return changed
	}
	source, err := from.Open(name)
	if err != nil {
		return err
	}
	defer source.Close()
	target, hash := filepath.Join(to, name), sha256.New()
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if err := writeFrom(io.TeeReader(io.LimitReader(&reader{ctx, source}, file.Bytes+1), hash), target); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != file.SHA256 {
		return changed
	}
	if !isDatabase(file.Path) {
		return nil
	}
	return database.Check(ctx, target)
}

// move moves the files from one directory to another. If it fails, it moves them back.
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
		if _, err := os.Lstat(target); err == nil {
			return fmt.Errorf("%s: %w: a hako has been started meanwhile", target, fs.ErrExist)
		}
		if err := os.Rename(filepath.Join(from, name), target); err != nil {
			return err
		}
		moved = append(moved, target)
	}
	return nil
}
