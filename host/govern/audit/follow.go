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
	"time"
)

// followPoll is the interval at which Follow looks for new records.
const followPoll = 250 * time.Millisecond

// Follow implements Reader.
func (d Dir) Follow(ctx context.Context, query *Query, after uint64) iter.Seq2[*Entry, error] {
	dir := string(d)
	wanted := *query
	wanted.After = max(wanted.After, after)
	return func(yield func(*Entry, error) bool) {
		names, err := segments(dir)
		if err == nil && len(names) == 0 {
			err = os.ErrNotExist
		}
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return
		}
		for n := number(names[0]) + before(ctx, dir, names[1:], after+1); ; n++ {
			if !followSegment(ctx, filepath.Join(dir, segmentName(n)), &wanted, yield) {
				return
			}
		}
	}
}

// before counts the segments in names that begin with record seq or an earlier one.
func before(ctx context.Context, dir string, names []string, seq uint64) (n int) {
	for _, name := range names {
		for first, err := range readSegment(ctx, filepath.Join(dir, name)) {
			if err != nil || first.Seq > seq {
				return n
			}
			n++
			break
		}
	}
	return n
}

// followSegment yields the entries of one segment until its last record. It reports whether to continue with the next
// segment.
func followSegment(ctx context.Context, path string, query *Query, yield func(*Entry, error) bool) bool {
	file, err := os.Open(path)
	if err != nil {
		yield(nil, fmt.Errorf("audit: %w", err))
		return false
	}
	defer file.Close()
	r := &lineReader{path: path, reader: bufio.NewReader(file)}
	for {
		entry, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			select {
			case <-ctx.Done():
				return false
			case <-time.After(followPoll):
			}
			continue
		case err != nil:
			yield(nil, err)
			return false
		case query.matches(entry) && !yield(entry, nil):
			return false
		case entry.Type == TypeRotated:
			return ctx.Err() == nil
		}
	}
}
