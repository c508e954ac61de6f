package audit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// append writes a record and, with Options.Sync, waits until it is on the disk.
func (f *files) append(ctx context.Context, _ time.Time, body []byte) error {
	seq, err := f.add(ctx, body)
	if err != nil || !f.options.Sync {
		return err
	}
	return f.sync(seq)
}

func (f *files) add(ctx context.Context, body []byte) (seq uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, ErrClosed
	}
	defer func() { f.failed = err != nil }()
	if err := f.acquireLock(ctx); err != nil {
		return 0, err
	}
	defer f.releaseLock()
	if err := f.write(body); err != nil {
		return 0, err
	}
	seq = f.chain.seq
	if f.unsigned++; f.unsigned >= checkpointEvery {
		f.options.warn(f.sign(), "sign the audit log")
	}
	f.stats.unsigned.Store(int64(f.unsigned))
	if f.segment.size >= f.options.SegmentBytes {
		f.options.warn(f.rotate(), "begin a new segment of the audit log")
	}
	return seq, nil
}

// ready tries to write after a failure; otherwise it checks that the files are still there.
func (f *files) ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	var err error
	if f.failed {
		err = f.locked(f.sign)
	} else {
		_, err = f.segment.grown()
	}
	f.failed = f.failed && err != nil
	return err
}

// acquireLock takes the lock of all processes and reads what others have written.
func (f *files) acquireLock(ctx context.Context) error {
	if err := f.lock.lock(ctx); errors.Is(err, fs.ErrNotExist) {
		return gone(err)
	} else if err != nil {
		return err
	}
	if err := f.catchUp(); err != nil {
		f.releaseLock()
		return err
	}
	return nil
}

func (f *files) releaseLock() { f.options.warn(f.lock.unlock(), "unlock the audit log") }

// catchUp reads the records of other processes and repairs an unfinished one.
func (f *files) catchUp() error {
	for {
		grown, err := f.segment.grown()
		if errors.Is(err, fs.ErrNotExist) && f.skipRemoved() {
			continue
		}
		if err != nil || !grown {
			return err
		}
		if _, err := f.segment.repair(); err != nil {
			return err
		}
		before := f.chain.seq
		if f.chain, err = f.segment.chainEnd(); err != nil {
			return err
		}
		f.unsigned += int(f.chain.seq - before)
		if f.chain.last != TypeRotated {
			return nil
		}
		next, err := openSegment(f.options.Dir, segmentName(f.segment.number+1))
		if err != nil {
			return err
		}
		f.options.warn(f.segment.close(), "close a segment of the audit log")
		f.segment = next
		f.segment.size = 0 // so that it counts as grown
	}
}

// skipRemoved continues with the oldest remaining segment, and reports whether it is after the current one: then
// another process has removed the current one as expired.
func (f *files) skipRemoved() bool {
	names, err := segments(f.options.Dir)
	if err != nil || len(names) == 0 || number(names[0]) <= f.segment.number {
		return false
	}
	next, err := openSegment(f.options.Dir, names[0])
	if err != nil {
		return false
	}
	f.options.warn(f.segment.file.Close(), "close a segment of the audit log")
	f.segment = next
	return true
}

// write appends a record to the chain and moves the head. The caller holds the lock.
func (f *files) write(body []byte) error {
	line := f.chain.line(body)
	if err := f.segment.write(line); err != nil {
		return err
	}
	next := f.chain.after(line)
	if err := writeHead(f.headFile, next, f.key); err != nil {
		return errors.Join(err, f.segment.unwrite(len(line)))
	}
	f.chain = next
	f.stats.wrote(len(line))
	return nil
}

// note writes an event of the log itself.
func (f *files) note(event *Event) error {
	if event.Time.IsZero() {
		event.Time = f.options.Now()
	}
	body, err := event.encode()
	if err != nil {
		return err
	}
	return f.write(body)
}

// sign appends a checkpoint.
func (f *files) sign() error {
	now := f.options.Now()
	err := f.note(f.key.checkpoint(f.chain, now))
	if err == nil {
		f.unsigned = 0
		f.stats.unsigned.Store(0)
		f.stats.signed.Store(now.UnixNano())
	}
	return err
}

// checkpoint signs the records since the last checkpoint.
func (f *files) checkpoint() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsigned == 0 || f.closed {
		return nil
	}
	return f.locked(f.sign)
}

// lockTime bounds the wait for another process that holds the log, for operations that no call waits for: nobody can
// write meanwhile.
const lockTime = 3 * time.Second

func (f *files) locked(do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if err := f.acquireLock(ctx); err != nil {
		return err
	}
	defer f.releaseLock()
	return do()
}

// flush writes records to the disk.
func (f *files) flush() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	return f.fsync()
}

// sync waits until the record seq is on the disk. One fsync serves all records that were written before it.
func (f *files) sync(seq uint64) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.synced >= seq {
		return nil
	}
	return f.fsync()
}

// fsync implements flush. The caller holds syncing.
func (f *files) fsync() error {
	f.mu.Lock()
	last, file := f.chain.seq, f.segment.file
	f.mu.Unlock()
	if last == f.synced {
		return nil
	}
	// A segment that was ended meanwhile has been flushed.
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	f.synced = last
	return nil
}

// close signs and flushes what is there.
func (f *files) close() error {
	err := f.checkpoint()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return errors.Join(err, f.release())
}
