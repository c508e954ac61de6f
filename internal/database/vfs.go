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

// files is the file system of one connection: the operating system's for the database, with bounds on what a statement can make grow
// beside it.
type files struct {
	vfs.VFSFilename
	name string
	dir  string
	// log and temporary are the most bytes of the write-ahead log and of all temporary files together, and used is what those take.
	log, temporary, used int64
	// ctx is the running statement's. Sorting can stay within one step of SQLite's for long, and writes temporary files meanwhile.
	ctx context.Context
	// full is why the running statement found no room, or no place; nil: it did.
	full error
	// writes says that the connection's user is the one who may write.
	writes bool
	// open, if not nil, opens the database in its Place.
	open func() *sharedFile
}

var filesNumber atomic.Uint64

// newFiles makes a file system and registers it under its name, until close.
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
	if o.Place != nil {
		f.dir = ""
		f.open = func() *sharedFile { return &sharedFile{files: f, place: o.Place, name: o.Path, cache: o.cache} }
	}
	vfs.Register(f.name, f)
	return f
}

func (f *files) close() { vfs.Unregister(f.name) }

// Delete, Access and FullPathname are of no use to a database in a Place: it has no journal, and a name that is its own.

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
		_ = os.Remove(file.Name()) // Windows refuses while it is open
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

// Why there is no room where a size is bounded.
var (
	errLog       = errors.New("the write-ahead log is full")
	errTemporary = errors.New("the temporary files are full")
)

// write writes to a file, and remembers if the disk is full.
func (f *files) write(file io.WriterAt, p []byte, offset int64) (int, error) {
	n, err := file.WriteAt(p, offset)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		f.full = err
		err = sqlite3.FULL
	}
	return n, err
}

// logFile is the write-ahead log. All that a statement changes is written there first.
type logFile struct {
	vfs.File
	files *files
}

func (f *logFile) WriteAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.files.log {
		f.files.full = errLog
		return 0, sqlite3.FULL
	}
	return f.files.write(f.File, p, offset)
}

// temporaryFile is what SQLite sorts and groups in. No other connection sees it, so it needs no locks.
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

// resize counts the file as having that size.
func (f *temporaryFile) resize(size int64) error {
	used := f.files.used + size - f.size
	if size > f.size && used > f.files.temporary {
		f.files.full = errTemporary
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
	_ = f.resize(0) // to less, which is never refused
	err := f.File.Close()
	_ = os.Remove(f.Name()) // where it could not be removed before
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
