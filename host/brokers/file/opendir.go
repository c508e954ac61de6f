package file

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/host/broker"
)

// openDir is a directory that a guest has open. The host's directory is open only while a listing is under way, because
// wazero resolves paths below it by name.
type openDir struct {
	sys.DirFile
	g    *guestFS
	path string
	file *os.File // nil while no listing is under way
	done bool     // the listing is complete
}

// Stat implements sys.File.
func (d *openDir) Stat() (wsys.Stat_t, sys.Errno) { return d.g.Lstat(d.path) }

// Dev implements sys.File.
func (d *openDir) Dev() (uint64, sys.Errno) {
	st, errno := d.Stat()
	return st.Dev, errno
}

// Ino implements sys.File.
func (d *openDir) Ino() (wsys.Inode, sys.Errno) {
	st, errno := d.Stat()
	return st.Ino, errno
}

// Seek implements sys.File: it supports only the start, for a new listing.
func (d *openDir) Seek(to offset, whence int) (int64, sys.Errno) {
	if to != 0 || whence != io.SeekStart {
		return 0, sys.EINVAL
	}
	return 0, d.g.h.errno(d.release())
}

// maxEntries is the number of entries that are read between two checks of the deadline.
const maxEntries = 256

// Readdir implements sys.File. It omits hidden names and inode numbers.
func (d *openDir) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	var dirents []sys.Dirent
	for n <= 0 || len(dirents) < n {
		most := maxEntries
		if n > 0 {
			most = min(most, n-len(dirents))
		}
		batch, err := d.next(most)
		dirents = append(dirents, batch...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, d.g.h.errno(err)
		}
	}
	return dirents, 0
}

// next returns the visible ones of up to n more entries, and io.EOF at the end.
func (d *openDir) next(n int) (dirents []sys.Dirent, err error) {
	if d.done {
		return nil, io.EOF
	}
	if d.file == nil {
		if d.file, err = d.start(); err != nil {
			return nil, err
		}
	}
	entries, err := d.file.ReadDir(n)
	for _, e := range entries {
		name := path.Join(d.path, e.Name())
		if err := d.g.h.spend(broker.EntrySteps + d.g.m.deny.cost(name)); err != nil {
			return nil, err
		}
		if !d.g.m.deny.match(name) {
			dirents = append(dirents, sys.Dirent{Name: e.Name(), Type: e.Type()})
		}
	}
	if errors.Is(err, io.EOF) {
		_ = d.release()
		d.done = true
	}
	return dirents, err
}

// start opens the host's directory.
func (d *openDir) start() (f *os.File, err error) {
	if err := d.g.h.spend(broker.ListSteps); err != nil {
		return nil, err
	}
	err = d.g.m.withEntry(d.g.h, d.path, false, func(p *dirEntry) error {
		switch {
		case p.info == nil:
			return sys.ENOENT
		case !p.isDir():
			return sys.ENOTDIR
		}
		if f, err = p.dir.OpenFile(p.name, os.O_RDONLY|nonblock, 0); err != nil {
			return asChanged(err)
		}
		info, err := f.Stat()
		if err == nil && !os.SameFile(info, p.info) {
			err = errChanged
		}
		if err != nil {
			_ = f.Close() // Nothing was read.
		}
		return err
	})
	return f, err
}

// Utimens implements sys.File.
func (d *openDir) Utimens(atim, mtim int64) sys.Errno { return d.g.Utimens(d.path, atim, mtim) }

// Sync implements sys.File. It does nothing.
func (d *openDir) Sync() sys.Errno { return 0 }

// Datasync implements sys.File.
func (d *openDir) Datasync() sys.Errno { return 0 }

// Close implements sys.File.
func (d *openDir) Close() sys.Errno {
	d.g.h.remove(d)
	return d.g.h.errno(d.release())
}

// release ends a listing. The next one starts from the beginning.
func (d *openDir) release() error {
	f := d.file
	d.file, d.done = nil, false
	if f == nil {
		return nil
	}
	return f.Close()
}
