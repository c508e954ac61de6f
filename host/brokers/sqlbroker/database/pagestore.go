package database

import (
	"context"
	"errors"
)

// PageStore stores the pages of databases for several processes, such as in a database server. SQLite itself runs in
// this process: a PageStore replaces its file.
//
// It is safe for concurrent use.
type PageStore interface {
	// Lock acquires the exclusive right to write to a database until release is called. If the lock is lost with the
	// connection, Commit detects that.
	Lock(ctx context.Context, name string) (release func(), err error)
	// Snapshot opens the current version of a database for reading. The caller closes it.
	Snapshot(ctx context.Context, name string) (Snapshot, error)
	// Commit atomically replaces pages and sets the length of the database, in pages. version must be the current
	// version; otherwise it returns ErrChanged. The new version is version+1.
	Commit(ctx context.Context, name string, version, length int64, pages []Page) error
}

// Snapshot is one version of a database. It belongs to one goroutine at a time.
type Snapshot interface {
	// Version is the number of commits. It is zero for a database that does not exist yet.
	Version() int64
	// Length is the number of pages.
	Length() int64
	// Changed returns the numbers of the pages that were written after the version.
	Changed(ctx context.Context, version int64) ([]int64, error)
	// Read returns the pages from first to first+n-1, without pages that were never written.
	Read(ctx context.Context, first, n int64) ([]Page, error)
	Close() error
}

// Page is one page of a database: its number, starting at 1, and its 4,096 bytes.
type Page struct {
	Number int64
	Data   []byte
}

// ErrChanged means that another process has committed meanwhile.
var ErrChanged = errors.New("another process has written to the database meanwhile")
