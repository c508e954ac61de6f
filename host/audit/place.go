package audit

import (
	"context"
	"iter"
)

// Place is a log to read, in a directory (Dir) or a store (Table). It may be written to meanwhile.
type Place interface {
	// String returns the directory or the store's name.
	String() string
	// Exists reports whether there is a log.
	Exists(ctx context.Context) (bool, error)
	// Read yields the matching entries, oldest first. It ends after an error; a line that is no record is one.
	Read(ctx context.Context, query *Query) iter.Seq2[*Entry, error]
	// Last returns the newest n matching entries, oldest first.
	Last(ctx context.Context, query *Query, n int) ([]*Entry, error)
	// Follow yields the matching entries after the record with the number after, and new ones as they are written,
	// until ctx ends. It ends after an error.
	Follow(ctx context.Context, query *Query, after uint64) iter.Seq2[*Entry, error]
	// Verify reads the whole log and reports each sign of a change. An error means that the log could not be read.
	Verify(ctx context.Context, expect *Expectation) (*Report, error)
}

// Dir is a log in a directory.
type Dir string

var _ Place = Dir("")

// String returns the directory.
func (d Dir) String() string { return string(d) }
