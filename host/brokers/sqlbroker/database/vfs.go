package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// files is the virtual file system of one connection. It uses the operating system's files and limits the size of the
// write-ahead log and of temporary files, which SQLite's own quota of pages does not cover.
type files struct {
	vfs.VFSFilename
	name string
	dir  string
	// log and temporary limit the write-ahead log and all temporary files together, in bytes. used is the size of the
	// temporary files.
	log, temporary, used int64
	// ctx is the context of the running statement. Writes check it, because sorting can take long within one step of
	// SQLite and writes temporary files.
	ctx context.Context
	// failure is the limit or error that the running statement met, or nil.
	failure error
	// writes reports whether the connection's user holds the right to write.
	writes bool
	// open, if not nil, opens the database in a PageStore.
	open func() *sharedFile
}

var filesNumber atomic.Uint64

// newFiles creates a file system and registers it under its name until close.
func newFiles(o *Options) *files {
	system := o.system
	if system == nil {
		system = vfs.Find("os").(vfs.VFSFilename)
	}
	f := &files{
		VFSFilename: system,
		name:        fmt.Sprintf("hako-%d", filesNumber.Add(1)),
		dir:         filepath.Dir(o.Path),
		log:         o.Quota + 16<<20,
		temporary:   o.Quota,
		ctx:         context.Background(),
	}
	if o.PageStore != nil {
		f.dir = ""
		f.open = func() *sharedFile { return &sharedFile{files: f, store: o.PageStore, name: o.Path, cache: o.cache} }
	}
	vfs.Register(f.name, f)
	return f
}

func (f *files) close() { vfs.Unregister(f.name) }

// Delete, Access and FullPathname do nothing for a database in a PageStore, which has no journal file.

func (f *files) Delete(name string, syncDir bool) error {
	if f.open != nil {
		return nil
	}
	return f.VFSFilename.Delete(name, syncDir)
}

func (f *files) Access(name string, flags vfs.AccessFlag) (bool, error) {
	if f.open != nil {
		return false, nil
	}
	return f.VFSFilename.Access(name, flags)
}

func (f *files) FullPathname(name string) (string, error) {
	if f.open != nil {
		return name, nil
	}
	return f.VFSFilename.FullPathname(name)
}

// OpenFilename opens a file of the database, or a temporary one if name is nil.
func (f *files) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == nil {
		file, err := os.CreateTemp(f.dir, "tmp-*")
		if err != nil {
			return nil, flags, err
		}
		_ = os.Remove(file.Name()) // fails on Windows while the file is open
		return &temporaryFile{File: file, files: f}, flags, nil
	}
	if f.open != nil {
		if flags&vfs.OPEN_MAIN_DB == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		return f.open(), flags, nil
	}
	file, flags, err := f.VFSFilename.OpenFilename(name, flags)
	if err == nil && flags&vfs.OPEN_WAL != 0 {
		file = &logFile{file, f}
	}
	return file, flags, err
}

// Limits that a write can exceed.
var (
	errLog       = errors.New("the write-ahead log is full")
	errTemporary = errors.New("the temporary files are full")
)

// write writes to a file and records whether the disk is full.
func (f *files) write(file io.WriterAt, p []byte, offset int64) (int, error) {
	n, err := file.WriteAt(p, offset)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		f.failure = err
		err = sqlite3.FULL
	}
	return n, err
}

// logFile is the write-ahead log, to which all changes are written first.
type logFile struct {
	vfs.File
	files *files
}

func (f *logFile) WriteAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.files.log {
		f.files.failure = errLog
		return 0, sqlite3.FULL
	}
	return f.files.write(f.File, p, offset)
}

// temporaryFile is a file for sorting and grouping. Other connections do not use it, so it needs no locks.
type temporaryFile struct {
	*os.File
	files *files
	size  int64
}

var _ vfs.File = (*temporaryFile)(nil)

func (f *temporaryFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.files.ctx.Err() != nil {
		return 0, sqlite3.INTERRUPT
	}
	if err := f.resize(max(f.size, offset+int64(len(p)))); err != nil {
		return 0, err
	}
	return f.files.write(f.File, p, offset)
}

// resize records the new size of the file, unless the limit is exceeded.
func (f *temporaryFile) resize(size int64) error {
	used := f.files.used + size - f.size
	if size > f.size && used > f.files.temporary {
		f.files.failure = errTemporary
		return sqlite3.FULL
	}
	f.files.used, f.size = used, size
	return nil
}

func (f *temporaryFile) Truncate(size int64) error {
	if err := f.resize(size); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *temporaryFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.files.ctx.Err() != nil {
		return 0, sqlite3.INTERRUPT
	}
	return f.File.ReadAt(p, offset)
}

func (f *temporaryFile) Size() (int64, error) { return f.size, nil }

func (f *temporaryFile) Close() error {
	_ = f.resize(0) // shrinking never fails
	err := f.File.Close()
	_ = os.Remove(f.Name()) // on Windows it was not removed before
	return err
}

func (*temporaryFile) Sync(vfs.SyncFlag) error          { return nil }
func (*temporaryFile) Lock(vfs.LockLevel) error         { return nil }
func (*temporaryFile) Unlock(vfs.LockLevel) error       { return nil }
func (*temporaryFile) CheckReservedLock() (bool, error) { return false, nil }
func (*temporaryFile) SectorSize() int                  { return 4096 }
func (*temporaryFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE
}
