package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Query says which entries to read. Zero fields do not matter.
type Query struct {
	// Since and Until bound the time; Until itself is left out.
	Since, Until time.Time
	Type         Type
	Outcome      string
	Plugin, Name string
	Tenant, User string
	// After is the number of a record: only later ones are read.
	After uint64
}

func (q *Query) matches(e *Entry) bool {
	for _, pair := range [][2]string{
		{string(q.Type), string(e.Type)}, {q.Outcome, e.Outcome}, {q.Plugin, e.Target.Plugin}, {q.Name, e.Target.Name},
		{q.Tenant, e.Subject.Tenant}, {q.User, e.Subject.User},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return e.Seq > q.After && !e.Time.Before(q.Since) && (q.Until.IsZero() || e.Time.Before(q.Until))
}

// Read gives the entries in dir that match, oldest first. The log may be written to meanwhile. An error ends it; lines that are no records are among them.
func Read(dir string, query *Query) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		names, err := segments(dir)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return
		}
		for _, name := range names {
			for entry, err := range readSegment(filepath.Join(dir, name)) {
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

func readSegment(path string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("audit: %w", err))
			return
		}
		defer file.Close()
		reader := bufio.NewReader(file)
		for n := 1; ; n++ {
			line, err := reader.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return // what follows the last newline is still being written
			}
			var entry *Entry
			if err == nil {
				entry, err = parseEntry(line)
			}
			if err != nil {
				err = fmt.Errorf("audit: %s:%d: %w: hako audit verify says more", path, n, err)
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// Last returns the newest n entries that match, oldest of them first.
func Last(dir string, query *Query, n int) ([]*Entry, error) {
	var last []*Entry
	for entry, err := range Read(dir, query) {
		if err != nil {
			return last, err
		}
		if last = append(last, entry); len(last) > 2*n {
			last = slices.Clone(last[len(last)-n:])
		}
	}
	return last[max(0, len(last)-n):], nil
}
