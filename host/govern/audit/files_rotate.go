package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// rotate signs and ends the segment, begins the next one and removes expired segments.
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
	return errors.Join(err, f.removeOld())
}

func (f *files) expire(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.options.Retain == 0 || f.closed {
		return nil
	}
	return f.locked(f.retire)
}

// retire removes expired records. It begins a new segment when the first record of the current one is older than a
// tenth of Options.Retain: a segment that does not fill up would keep its old records.
func (f *files) retire() error {
	if f.options.Retain == 0 {
		return nil
	}
	begun, err := f.segment.begun()
	if err != nil {
		return err
	}
	if !begun.IsZero() && f.options.Now().Sub(begun) >= f.options.Retain/10 {
		return f.rotate()
	}
	return f.removeOld()
}

// removeOld removes expired segments and records that, because Verify begins with what is left.
func (f *files) removeOld() error {
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
	last, err := old.chainEnd()
	if err := errors.Join(err, old.close()); err != nil {
		return err
	}
	if err := f.note(&Event{Type: TypeRemoved,
		Removed: &Removed{Segment: name, Seq: last.seq, Hash: last.hash}}); err != nil {
		return err
	}
	return os.Remove(filepath.Join(f.options.Dir, name))
}
