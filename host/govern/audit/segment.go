package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Names of files in the directory.
const (
	lockName    = "audit.lock"
	headName    = "audit.head"
	keyName     = "audit.key"
	publicName  = "audit.pub"
	segmentForm = "audit-%08d.jsonl"
)

func segmentName(number int) string { return fmt.Sprintf(segmentForm, number) }

// segments lists the segments in dir, oldest first.
func segments(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range list {
		if number(entry.Name()) > 0 {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return number(a) - number(b) })
	return names, nil
}

// number returns the number of a segment, or 0 for another file.
func number(name string) (n int) {
	if _, err := fmt.Sscanf(name, segmentForm, &n); err != nil || segmentName(n) != name {
		return 0
	}
	return n
}

// segment is a file of the log, open for appending.
type segment struct {
	number int
	file   *os.File
	size   int64 // as known to this process
}

func createSegment(dir string, n int) (*segment, error) {
	file, err := os.OpenFile(filepath.Join(dir, segmentName(n)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &segment{number: n, file: file}, nil
}

func openSegment(dir, name string) (*segment, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &segment{number: number(name), file: file}, nil
}

// grown reports whether another process has written to the segment. It fails if the file is no longer the one in the
// directory, because nobody would see what is written to it.
func (s *segment) grown() (bool, error) {
	info, err := s.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(s.file.Name())
	if err != nil {
		return false, gone(err)
	}
	if !os.SameFile(info, there) {
		return false, fmt.Errorf("%s is not the file that was written to so far: restore it, or restart hako",
			s.file.Name())
	}
	return info.Size() != s.size, nil
}

// repair cuts off an unfinished line and returns its length.
func (s *segment) repair() (cut int64, err error) {
	end, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	last, err := s.lineStart(end)
	if err != nil {
		return 0, err
	}
	if s.size = end; last == end {
		return 0, nil
	}
	s.size = last
	return end - last, s.file.Truncate(last)
}

// lineStart returns where the line that ends at end begins: end itself after a newline and at the start of the file.
func (s *segment) lineStart(end int64) (int64, error) {
	buffer := make([]byte, 4096)
	for end > 0 {
		n := min(int64(len(buffer)), end)
		if _, err := s.file.ReadAt(buffer[:n], end-n); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(buffer[:n], '\n'); at >= 0 {
			return end - n + int64(at) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// gone is the error for missing files of the log.
func gone(err error) error {
	return fmt.Errorf("files of the log are missing: %w: restore them, or restart hako to start a new log", err)
}

// backward yields the lines of the file with their newlines, last one first.
func (s *segment) backward() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for end := s.size; end > 0; {
			start, err := s.lineStart(end - 1)
			line := make([]byte, end-start)
			if err == nil {
				_, err = s.file.ReadAt(line, start)
			}
			if !yield(line, err) || err != nil {
				return
			}
			end = start
		}
	}
}

// chainEnd returns the end of the chain in the file, whose last line is whole. For an empty file it is the zero chain.
func (s *segment) chainEnd() (chain, error) {
	if s.size == 0 {
		end, err := s.file.Seek(0, io.SeekEnd)
		if err != nil || end == 0 {
			return chain{}, err
		}
		s.size = end
	}
	for line, err := range s.backward() {
		if err != nil {
			return chain{}, err
		}
		entry, err := parseEntry(line)
		if err != nil {
			return chain{}, fmt.Errorf("%s ends with an invalid record: %w: hako audit verify has the details; "+
				"move the directory away to start a new log", s.file.Name(), err)
		}
		return chain{seq: entry.Seq, hash: hashOf(line), last: entry.Type}, nil
	}
	return chain{}, nil
}

// begun returns the time of the first record. It is zero for an empty file.
func (s *segment) begun() (time.Time, error) {
	if s.size == 0 {
		return time.Time{}, nil
	}
	line, err := bufio.NewReader(io.NewSectionReader(s.file, 0, min(s.size, 2*maxRecord))).ReadBytes('\n')
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: read the first record: %w", s.file.Name(), err)
	}
	entry, err := parseEntry(line)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s begins with an invalid record: %w: hako audit verify has the details",
			s.file.Name(), err)
	}
	return entry.Time, nil
}

// write appends a line. If it fails, the file is unchanged.
func (s *segment) write(line []byte) error {
	n, err := s.file.WriteAt(line, s.size)
	if err != nil && n > 0 {
		err = errors.Join(err, s.file.Truncate(s.size))
	}
	if err == nil {
		s.size += int64(n)
	}
	return err
}

// unwrite removes the last line, which has n bytes.
func (s *segment) unwrite(n int) error {
	s.size -= int64(n)
	return s.file.Truncate(s.size)
}

func (s *segment) close() error { return errors.Join(s.file.Sync(), s.file.Close()) }

// discard undoes createSegment.
func (s *segment) discard() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }
