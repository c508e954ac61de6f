package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// files is a log in a directory.
type files struct {
	options *Options
	key     *key
	stats   *stats

	// mu guards the fields below and, together with lock, the files.
	mu       sync.Mutex
	lock     processLock
	segment  *segment
	headFile *os.File
	chain    chain
	unsigned int  // records since the last checkpoint
	failed   bool // the last attempt to write failed
	closed   bool

	// syncing serializes fsync. synced is the last record known to be on the disk.
	syncing sync.Mutex
	synced  uint64
}

var _ writer = (*files)(nil)

func openFiles(options *Options, stats *stats) (*files, *key, error) {
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	f := &files{options: options, stats: stats, lock: processLock{path: filepath.Join(options.Dir, lockName)}}
	if err := f.open(); err != nil {
		return nil, nil, fmt.Errorf("audit log %s: %w", options.Dir, errors.Join(err, f.release()))
	}
	return f, f.key, nil
}

// openTime bounds the wait for other processes when the log is opened. They hold it for the time of a record, or of
// opening it, unless they stand still.
const openTime = 30 * time.Second

// open prepares the log under the lock.
func (f *files) open() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	if err := f.lock.lock(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.lock.unlock()) }()
	names, err := segments(f.options.Dir)
	if err != nil {
		return err
	}
	if f.key, err = openKey(f.options.Dir, len(names) == 0); err != nil {
		return err
	}
	head, err := readHead(f.options.Dir, f.key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.options.Logger.Error("the head of the audit log cannot be trusted", "dir", f.options.Dir, "err", err)
		head.forged = true
	}
	if f.headFile, err = os.OpenFile(filepath.Join(f.options.Dir, headName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if len(names) == 0 {
		return f.createFirst(head)
	}
	return f.resume(names[len(names)-1], head)
}

// createFirst creates the first segment.
func (f *files) createFirst(head head) (err error) {
	if f.segment, err = createSegment(f.options.Dir, 1); err != nil {
		return err
	}
	if head.Seq > 0 {
		return f.note(&Event{Type: TypeGap, Gap: &Gap{Seq: head.Seq, Hash: head.Hash}})
	}
	return nil
}

// resume continues the log of an earlier process.
func (f *files) resume(name string, head head) (err error) {
	if f.segment, err = openSegment(f.options.Dir, name); err != nil {
		return err
	}
	cut, err := f.segment.repair()
	if err != nil {
		return err
	}
	if f.chain, err = f.end(); err != nil {
		return err
	}
	if cut > 0 {
		f.options.Logger.Warn("removed an unfinished record from the audit log", "bytes", cut)
		if err := f.note(&Event{Type: TypeRecovered, Bytes: cut}); err != nil {
			return err
		}
	}
	if err := f.countUnsigned(); err != nil {
		return err
	}
	fits, err := f.fits(head)
	if err != nil {
		return err
	}
	if fits {
		f.options.warn(f.retire(), "remove old records of the audit log")
		return nil
	}
	f.options.Logger.Error("the end of the audit log does not match its head",
		"last", f.chain.seq, "expected", head.Seq)
	return f.note(&Event{Type: TypeGap, Gap: &Gap{Seq: head.Seq, Hash: head.Hash}})
}

// countUnsigned counts the records since the last checkpoint.
func (f *files) countUnsigned() error {
	for line, err := range f.segment.backward() {
		if err != nil {
			return err
		}
		if bytes.Contains(line, []byte(`"type":"`+TypeCheckpoint+`"`)) { // or the arguments of a call contain that
			if entry, err := parseEntry(line); err == nil && entry.Type == TypeCheckpoint {
				return nil
			}
		}
		f.unsigned++
	}
	return nil
}

// fits reports whether the log contains the record that the head names. Later records are possible: their writer ended
// before it moved the head, or the log was copied while it grew.
func (f *files) fits(head head) (bool, error) {
	switch {
	case head.forged || head.Seq > f.chain.seq:
		return false, nil
	case head.Seq == 0:
		return f.chain.seq <= 1, nil
	case head.Seq == f.chain.seq:
		return head.Hash == f.chain.hash, nil
	}
	if found, fits, err := f.segment.fits(head); err != nil || found {
		return fits, err
	}
	for n := f.segment.number - 1; n > 0; n-- {
		before, err := openSegment(f.options.Dir, segmentName(n))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = before.chainEnd() // to learn its size
		found, fits := false, false
		if err == nil {
			found, fits, err = before.fits(head)
		}
		if err = errors.Join(err, before.file.Close()); err != nil || found {
			return fits, err
		}
	}
	return false, nil
}

// fits looks for the record that the head names, by the hash in the record after it.
func (s *segment) fits(head head) (found, fits bool, err error) {
	for line, err := range s.backward() {
		if err != nil {
			return false, false, err
		}
		seq, prev, err := parseLine(line)
		if err != nil || seq == head.Seq+1 {
			return true, err == nil && prev == head.Hash, nil
		}
	}
	return false, false, nil
}

// end returns the end of the chain. A segment without records continues the previous one.
func (f *files) end() (chain, error) {
	c, err := f.segment.chainEnd()
	if err != nil || c.seq > 0 || f.segment.number == 1 {
		return c, err
	}
	before, err := openSegment(f.options.Dir, segmentName(f.segment.number-1))
	if err != nil {
		return chain{}, err
	}
	c, err = before.chainEnd()
	return c, errors.Join(err, before.file.Close())
}

func (f *files) release() error {
	err := f.lock.close()
	if f.segment != nil {
		err = errors.Join(err, f.segment.close())
	}
	if f.headFile != nil {
		err = errors.Join(err, f.headFile.Close())
	}
	return err
}
