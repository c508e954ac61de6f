package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Read implements Reader.
func (d Dir) Read(ctx context.Context, query *Query) iter.Seq2[*Entry, error] {
	dir := string(d)
	return func(yield func(*Entry, error) bool) {
		names, err := segments(dir)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return
		}
		for _, name := range names {
			for entry, err := range readSegment(ctx, filepath.Join(dir, name)) {
				if err == nil && !query.matches(entry) {
					continue
				}
				if !yield(entry, err) || err != nil {
					return
				}
			}
		}
	}
}

// readSegment reads the records of a segment. It fails when ctx ends.
func readSegment(ctx context.Context, path string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return
		}
		defer file.Close()
		r := &lineReader{path: path, reader: bufio.NewReader(file)}
		for {
			entry, err := r.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				err = ctx.Err()
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// lineReader reads the records of one segment.
type lineReader struct {
	path    string
	reader  *bufio.Reader
	partial []byte // of a record that is still being written
	lines   int
}

// next returns the next record, or io.EOF if it is not written yet.
func (r *lineReader) next() (*Entry, error) {
	line, err := r.reader.ReadBytes('\n')
	r.partial = append(r.partial, line...)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	r.lines++
	var entry *Entry
	if err == nil {
		entry, err = parseEntry(r.partial)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %s:%d: %w: hako audit verify has the details", r.path, r.lines, err)
	}
	r.partial = r.partial[:0]
	return entry, nil
}

// Last implements Reader.
func (d Dir) Last(ctx context.Context, query *Query, n int) ([]*Entry, error) {
	dir := string(d)
	names, err := segments(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var last []*Entry
	for i := len(names) - 1; i >= 0 && len(last) < n; i-- {
		path := filepath.Join(dir, names[i])
		if query.Before > 0 && first(ctx, path) >= query.Before {
			continue
		}
		of, err := lastOf(ctx, path, query, n-len(last))
		if last = append(of, last...); err != nil {
			return last, err
		}
	}
	return last, nil
}

// first returns the number of a segment's first record, or 0 if it cannot be read.
func first(ctx context.Context, path string) uint64 {
	for entry, err := range readSegment(ctx, path) {
		if err == nil {
			return entry.Seq
		}
		break
	}
	return 0
}

// lastOf implements Last for one segment.
func lastOf(ctx context.Context, path string, query *Query, n int) ([]*Entry, error) {
	var last []*Entry
	for entry, err := range readSegment(ctx, path) {
		if err != nil {
			return last, err
		}
		if !query.matches(entry) {
			continue
		}
		if last = append(last, entry); len(last) > 2*n {
			last = slices.Clone(last[len(last)-n:])
		}
	}
	return last[max(0, len(last)-n):], nil
}
