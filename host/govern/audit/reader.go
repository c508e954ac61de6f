package audit

import (
	"context"
	"iter"
	"slices"
)

// Reader is a log to read, in a directory (Dir) or a store (Table). It may be written to meanwhile.
type Reader interface {
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

// Tail yields the newest count matching entries, oldest first, and with follow those to come, until ctx ends.
func Tail(ctx context.Context, place Reader, query *Query, count int, follow bool) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		end, err := place.Last(ctx, &Query{OwnNotes: true}, 1)
		last := []*Entry(nil)
		if err == nil {
			last, err = place.Last(ctx, query, count)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, entry := range last {
			if !yield(entry, nil) {
				return
			}
		}
		if !follow {
			return
		}
		after := uint64(0)
		for _, entry := range slices.Concat(end, last) {
			after = max(after, entry.Seq)
		}
		place.Follow(ctx, query, after)(yield)
	}
}

// Dir is a log in a directory.
type Dir string

var _ Reader = Dir("")

// String returns the directory.
func (d Dir) String() string { return string(d) }
