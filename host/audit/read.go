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
	"time"
)

// Query selects entries. Zero fields do not restrict.
type Query struct {
	// Since and Until bound the time. Until is exclusive.
	Since, Until  time.Time
	Type          Type
	Outcome       string
	Plugin, Name  string
	Tenant, User  string
	Token, Action string
	Call          string
	// ID identifies a call, an HTTP request, a trace or a question. Clients choose some of them.
	ID string
	// Asked restricts to calls about which people were asked, and Approver to those that this person answered.
	Asked    bool
	Approver string
	// OwnNotes includes the records of the log itself, such as checkpoints.
	OwnNotes bool
	// After and Before, if not zero, restrict to records with a greater or smaller number.
	After, Before uint64
}

func (q *Query) matches(e *Entry) bool {
	for _, pair := range [][2]string{
		{string(q.Type), string(e.Type)}, {q.Outcome, e.Outcome}, {q.Plugin, e.Target.Plugin}, {q.Name, e.Target.Name},
		{q.Tenant, e.Subject.Tenant}, {q.User, e.Subject.User}, {q.Token, e.Subject.Token}, {q.Action, e.Action},
		{q.Call, e.Call},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	if q.ID != "" && !e.has(q.ID) {
		return false
	}
	if (q.Asked || q.Approver != "") && (e.Approval == nil || q.Approver != "" && e.Approval.By != q.Approver) {
		return false
	}
	if !q.OwnNotes && e.Type.own() {
		return false
	}
	if q.Before > 0 && e.Seq >= q.Before {
		return false
	}
	return e.Seq > q.After && !e.Time.Before(q.Since) && (q.Until.IsZero() || e.Time.Before(q.Until))
}

// has reports whether the event has the ID.
func (e *Event) has(id string) bool {
	return id == e.Call || id == e.HTTPRequestID || id == e.TraceID || e.Approval != nil && id == e.Approval.ID
}

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
