package database

import (
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// sharedFile is the file of a database in a PageStore, for one connection. Each read transaction of SQLite has one
// snapshot. SQLite writes the pages of a transaction at its end. They are collected and committed together when SQLite
// flushes the file (sqlite.org/atomiccommit.html, section 3.10). So the rollback journal can stay in memory: it only
// undoes uncommitted writes.
type sharedFile struct {
	files    *files
	store    PageStore
	name     string
	cache    *pageCache
	snapshot Snapshot // nil outside of read transactions
	level    vfs.LockLevel
	// written are the pages of the transaction, and length the number of pages of the database with them.
	written map[int64][]byte
	length  int64
	// committed reports that they were committed, and so are newer than the snapshot until that is closed.
	committed bool
	// failed reports that the commit failed. The database is unchanged, and SQLite's writes to undo the changes are
	// dropped.
	failed bool
}

var _ vfs.File = (*sharedFile)(nil)

// errPageStore reports a failure of the PageStore to SQLite.
var errPageStore = errors.New("the page store failed")

// recordFailure records an error of the PageStore for explain, and returns code for SQLite.
func (f *sharedFile) recordFailure(err error, code error) error {
	f.files.failure = fmt.Errorf("%w: %w", errPageStore, err)
	return code
}

// Lock opens a snapshot at the start of a read. A writer already holds the PageStore's lock, acquired before the
// snapshot: see DB.acquire.
func (f *sharedFile) Lock(level vfs.LockLevel) error {
	if level >= vfs.LOCK_RESERVED && !f.files.writes {
		return sqlite3.READONLY
	}
	if level >= vfs.LOCK_RESERVED && f.committed {
		return sqlite3.BUSY // an earlier statement is still reading
	}
	if f.snapshot == nil {
		if err := f.read(); err != nil {
			return f.recordFailure(err, sqlite3.IOERR_LOCK)
		}
	}
	f.level = level
	return nil
}

// read opens a snapshot and advances the cache to it.
func (f *sharedFile) read() error {
	ctx := f.files.ctx
	snapshot, err := f.store.Snapshot(ctx, f.name)
	if err != nil {
		return err
	}
	if err := f.cache.advance(ctx, snapshot); err != nil {
		return errors.Join(err, snapshot.Close())
	}
	f.snapshot, f.length, f.written, f.committed, f.failed = snapshot, snapshot.Length(), nil, false, false
	return nil
}

// Unlock closes the snapshot at the end of a read.
func (f *sharedFile) Unlock(level vfs.LockLevel) error {
	f.level = level
	if level > vfs.LOCK_NONE || f.snapshot == nil {
		return nil
	}
	_ = f.snapshot.Close() // it has only read
	f.snapshot, f.written, f.committed = nil, nil, false
	return nil
}

func (f *sharedFile) CheckReservedLock() (bool, error) { return f.level >= vfs.LOCK_RESERVED, nil }

func (f *sharedFile) ReadAt(p []byte, offset int64) (int, error) {
	number, from := offset/pageSize+1, offset%pageSize
	if f.snapshot == nil || number > f.length || from+int64(len(p)) > pageSize {
		return 0, io.EOF
	}
	page, err := f.page(number)
	if err != nil {
		return 0, f.recordFailure(err, sqlite3.IOERR_READ)
	}
	clear(p)
	if page != nil {
		copy(p, page[from:])
	}
	return len(p), nil
}

// readAhead is the number of pages that are fetched at once.
const readAhead = 16

// page returns a page, which must not be changed, or nil if it was never written.
func (f *sharedFile) page(number int64) ([]byte, error) {
	if page, ok := f.written[number]; ok {
		return page, nil
	}
	version := f.snapshot.Version()
	if page, ok := f.cache.get(version, number); ok {
		return page, nil
	}
	pages, err := f.snapshot.Read(f.files.ctx, number, readAhead)
	if err != nil {
		return nil, err
	}
	var found []byte
	for _, page := range pages {
		if len(page.Data) != pageSize {
			return nil, fmt.Errorf("page %d has %d bytes", page.Number, len(page.Data))
		}
		if page.Number == number {
			found = page.Data
		}
	}
	f.cache.put(version, pages)
	return found, nil
}

// WriteAt collects a page. SQLite writes whole pages.
func (f *sharedFile) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) != pageSize || offset%pageSize != 0 || f.level < vfs.LOCK_RESERVED || f.committed {
		return 0, sqlite3.IOERR_WRITE
	}
	if f.failed {
		return len(p), nil
	}
	if f.written == nil {
		f.written = map[int64][]byte{}
	}
	number := offset/pageSize + 1
	f.written[number] = append([]byte(nil), p...)
	f.length = max(f.length, number)
	return len(p), nil
}

func (f *sharedFile) Truncate(size int64) error {
	if !f.failed {
		f.length = (size + pageSize - 1) / pageSize
	}
	return nil
}

// Sync commits the written pages. After an error the database is unchanged.
func (f *sharedFile) Sync(vfs.SyncFlag) error {
	if f.failed || f.committed || len(f.written) == 0 {
		return nil
	}
	pages := make([]Page, 0, len(f.written))
	for number, data := range f.written {
		if number <= f.length {
			pages = append(pages, Page{number, data})
		}
	}
	version := f.snapshot.Version()
	if err := f.store.Commit(f.files.ctx, f.name, version, f.length, pages); err != nil {
		f.written, f.failed = nil, true
		f.cache.clear() // the outcome of the commit is unknown
		return f.recordFailure(err, sqlite3.FULL)
	}
	f.cache.commit(version, pages)
	f.committed = true
	return nil
}

func (f *sharedFile) Size() (int64, error) { return f.length * pageSize, nil }

func (f *sharedFile) SectorSize() int { return pageSize }

func (f *sharedFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE | vfs.IOCAP_UNDELETABLE_WHEN_OPEN
}

func (f *sharedFile) Close() error { return f.Unlock(vfs.LOCK_NONE) }
