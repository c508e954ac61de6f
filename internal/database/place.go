package database

import (
	"context"
	"errors"
)

// Place keeps the pages of databases where several processes reach them, such as in a database server. SQLite runs here all the same: what
// a Place has is what a file would.
//
// It is safe for concurrent use.
type Place interface {
	// Lock waits until no other process writes to the database of that name, and keeps them from it until release is called. A lock that
	// is lost, because the place cannot be reached any more, is noticed by Commit.
	Lock(ctx context.Context, name string) (release func(), err error)
	// Snapshot opens the database for reading, as it is now. The caller closes the snapshot.
	Snapshot(ctx context.Context, name string) (Snapshot, error)
	// Commit puts pages in the place of what they were, all or none of them, and makes the database that many pages long. The version must
	// be the one that the pages were read at: ErrChanged otherwise. The new version is the next number.
	Commit(ctx context.Context, name string, version, length int64, pages []Page) error
}

// Snapshot is one version of a database. It belongs to one goroutine at a time.
type Snapshot interface {
	// Version counts commits. Zero is a database that is not there yet.
	Version() int64
	// Length is how many pages there are.
	Length() int64
	// Changed are the numbers of the pages that commits after that version have written.
	Changed(ctx context.Context, version int64) ([]int64, error)
	// Read returns those of n pages from first on that have ever been written.
	Read(ctx context.Context, first, n int64) ([]Page, error)
	Close() error
}

// Page is one page of a database: its number, from 1 on, and its 4,096 bytes.
type Page struct {
	Number int64
	Data   []byte
}

// ErrChanged says that another process has committed meanwhile.
var ErrChanged = errors.New("another process has written to the database meanwhile")
