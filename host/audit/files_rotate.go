package audit

import (
	"errors"
	"os"
	"path/filepath"
)

// rotate signs and ends the segment and begins the next one, and removes what is too old.
func (f *files) rotate() error {
	if err := errors.Join(f.sign(), f.headFile.Sync()); err != nil {
		return err
	}
	next, err := createSegment(f.options.Dir, f.segment.number+1)
	if err != nil {
		return err
	}
	if err := f.note(&Event{Type: TypeRotated}); err != nil {
		return errors.Join(err, next.discard())
	}
	err = f.segment.close()
	f.segment = next
	return errors.Join(err, f.expire())
}

// expire removes segments that are too old, and says so in the log, for Verify begins with what is left.
func (f *files) expire() error {
	if f.options.Retain == 0 {
		return nil
	}
	names, err := segments(f.options.Dir)
	if err != nil {
		return err
	}
	for _, name := range names[:len(names)-1] {
		info, err := os.Stat(filepath.Join(f.options.Dir, name))
		if err != nil || f.options.Now().Sub(info.ModTime()) < f.options.Retain {
			return err
		}
		if err := f.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) remove(name string) error {
	old, err := openSegment(f.options.Dir, name)
	if err != nil {
		return err
	}
	last, err := old.tail()
	if err := errors.Join(err, old.close()); err != nil {
		return err
	}
	if err := f.note(&Event{Type: TypeRemoved, Removed: &Removed{Segment: name, Seq: last.seq, Hash: last.hash}}); err != nil {
		return err
	}
	return os.Remove(filepath.Join(f.options.Dir, name))
}
