package audit

import (
	"context"
	"iter"
)

// Place is where a log lies, to be read: a directory (Dir) or a store (In). It may be written to meanwhile.
type Place interface {
	// String names it.
	String() string
	// Exists reports whether there is a log.
	Exists(ctx context.Context) (bool, error)
	// Read gives the entries that match, oldest first. An error ends it; lines that are no records are among them.
	Read(ctx context.Context, query *Query) iter.Seq2[*Entry, error]
	// Last returns the newest n entries that match, oldest of them first. It reads no more than it needs.
	Last(ctx context.Context, query *Query, n int) ([]*Entry, error)
	// Follow gives the entries after record after that match, and those to come as they are written, until ctx ends. An
	// error ends it too.
	Follow(ctx context.Context, query *Query, after uint64) iter.Seq2[*Entry, error]
	// Verify reads the whole log and reports each sign that it is not as it was written. An error means that the log
	// could not be read, not that it was changed.
	Verify(ctx context.Context, expect *Expectation) (*Report, error)
}

// Dir is a log in a directory.
type Dir string

var _ Place = Dir("")

// String is the directory.
func (d Dir) String() string { return string(d) }
