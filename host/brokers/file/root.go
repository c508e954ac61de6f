package file

import (
	"io"
	"io/fs"
	"slices"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// Root returns the directory "/" of a guest, which lists the mounts and nothing else. Without it, a language runtime
// that finds no preopen for a path reports "bad file number"; with it, that the file does not exist. outside, which may
// be nil, is then called with the path, without its first "/". It belongs to one guest.
func Root(mounts []*Mount, outside func(path string)) sys.FS {
	if outside == nil {
		outside = func(string) {}
	}
	r := &rootFS{outside: outside}
	for _, m := range mounts {
		r.entries = append(r.entries, sys.Dirent{Name: m.name, Type: fs.ModeDir})
	}
	return r
}

type rootFS struct {
	sys.UnimplementedFS
	entries []sys.Dirent
	outside func(path string)
}

// OpenFile implements sys.FS.
func (r *rootFS) OpenFile(path string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	if path != "." && path != "" {
		r.outside(path)
	}
	switch {
	case flag&modifies != 0:
		return nil, errReadOnly
	case path != "." && path != "":
		return nil, sys.ENOENT
	}
	return &rootDir{root: r}, 0
}

// Lstat implements sys.FS. It knows "/" and the mounts in it.
func (r *rootFS) Lstat(path string) (wsys.Stat_t, sys.Errno) {
	number := -1 // of "/"
	if path != "." && path != "" {
		number = slices.IndexFunc(r.entries, func(e sys.Dirent) bool { return e.Name == path })
		if number < 0 {
			r.outside(path)
			return wsys.Stat_t{}, sys.ENOENT
		}
	}
	return wsys.Stat_t{Dev: 1, Ino: uint64(number + 2), Nlink: 1, Mode: fs.ModeDir | 0o555}, 0
}

// Stat implements sys.FS.
func (r *rootFS) Stat(path string) (wsys.Stat_t, sys.Errno) { return r.Lstat(path) }

// Readlink implements sys.FS.
func (r *rootFS) Readlink(string) (string, sys.Errno) { return "", sys.ENOENT }

// Mkdir implements sys.FS. Like the following methods it always fails.
func (r *rootFS) Mkdir(path string, _ fs.FileMode) sys.Errno      { return r.readOnly(path) }
func (r *rootFS) Rmdir(path string) sys.Errno                     { return r.readOnly(path) }
func (r *rootFS) Unlink(path string) sys.Errno                    { return r.readOnly(path) }
func (r *rootFS) Rename(from, to string) sys.Errno                { return r.readOnly(from) | r.readOnly(to) }
func (r *rootFS) Link(from, to string) sys.Errno                  { return r.readOnly(from) | r.readOnly(to) }
func (r *rootFS) Symlink(_, link string) sys.Errno                { return r.readOnly(link) }
func (r *rootFS) Chmod(path string, _ fs.FileMode) sys.Errno      { return r.readOnly(path) }
func (r *rootFS) Utimens(path string, _ int64, _ int64) sys.Errno { return r.readOnly(path) }

func (r *rootFS) readOnly(path string) sys.Errno {
	r.outside(path)
	return errReadOnly
}

// rootDir is an open "/".
type rootDir struct {
	sys.DirFile
	root *rootFS
	read int // entries listed so far
}

// Stat implements sys.File.
func (d *rootDir) Stat() (wsys.Stat_t, sys.Errno) { return d.root.Lstat(".") }

// Dev implements sys.File.
func (d *rootDir) Dev() (uint64, sys.Errno) { return 1, 0 }

// Ino implements sys.File.
func (d *rootDir) Ino() (wsys.Inode, sys.Errno) { return 1, 0 }

// Seek implements sys.File: it supports only the start.
func (d *rootDir) Seek(to offset, whence int) (int64, sys.Errno) {
	if to != 0 || whence != io.SeekStart {
		return 0, sys.EINVAL
	}
	d.read = 0
	return 0, 0
}

// Readdir implements sys.File.
func (d *rootDir) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	left := d.root.entries[d.read:]
	if n > 0 {
		left = left[:min(n, len(left))]
	}
	d.read += len(left)
	return left, 0
}

// Utimens implements sys.File.
func (d *rootDir) Utimens(int64, int64) sys.Errno { return errReadOnly }

// Sync implements sys.File.
func (d *rootDir) Sync() sys.Errno { return 0 }

// Datasync implements sys.File.
func (d *rootDir) Datasync() sys.Errno { return 0 }

// Close implements sys.File.
func (d *rootDir) Close() sys.Errno { return 0 }
