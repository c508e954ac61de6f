package audit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// append writes a record and, if it has to, waits until it is on the disk.
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
	if err := f.enter(ctx); err != nil {
		return 0, err
	}
	defer f.leave()
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

// ready tries to write after a failure; else it looks whether the files are still there.
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

// enter takes the lock among processes, and catches up with what others have written.
func (f *files) enter(ctx context.Context) error {
	if ok, err := f.flock.TryLock(); errors.Is(err, fs.ErrNotExist) {
		return gone(err)
	} else if err != nil {
		return err
	} else if !ok {
		if _, err := f.flock.TryLockContext(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if err := f.catchUp(); err != nil {
		f.leave()
		return err
	}
	return nil
}

func (f *files) leave() { f.options.warn(f.flock.Unlock(), "unlock the audit log") }

// catchUp follows the segments that other processes have written, and repairs what one of them left unfinished.
func (f *files) catchUp() error {
	for {
		grown, err := f.segment.grown()
		if errors.Is(err, fs.ErrNotExist) && f.behind() {
			continue
		}
		if err != nil || !grown {
			return err
		}
		if _, err := f.segment.repair(); err != nil {
			return err
		}
		before := f.chain.seq
		if f.chain, err = f.segment.tail(); err != nil {
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

// behind goes on with the oldest segment that is left, and reports whether that comes after this one, which another
// process has then removed because it was too old.
func (f *files) behind() bool {
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

// write adds one record to the chain and moves the head. The lock is held.
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

// note writes an event of the log's own.
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

// sign signs the chain as it is.
func (f *files) sign() error {
	now := f.options.Now()
	err := f.note(&Event{Time: now, Type: TypeCheckpoint, Checkpoint: f.key.sign(f.chain.seq+1, f.chain.head(), now)})
	if err == nil {
		f.unsigned = 0
		f.stats.unsigned.Store(0)
		f.stats.signed.Store(now.UnixNano())
	}
	return err
}

// checkpoint signs what has come since the last signature.
func (f *files) checkpoint() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unsigned == 0 || f.closed {
		return nil
	}
	return f.locked(f.sign)
}

// lockTime bounds the wait for another process that holds the log where no call waits: meanwhile nobody can write.
const lockTime = 3 * time.Second

func (f *files) locked(do func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.leave()
	return do()
}

// flush brings to the disk what has been written.
func (f *files) flush() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	return f.flushed()
}

// sync waits until the record seq is on the disk. Records that come meanwhile go there together.
func (f *files) sync(seq uint64) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.synced >= seq {
		return nil
	}
	return f.flushed()
}

// flushed is flush with syncing held.
func (f *files) flushed() error {
	f.mu.Lock()
	last, file := f.chain.seq, f.segment.file
	f.mu.Unlock()
	if last == f.synced {
		return nil
	}
	// A segment that has been ended in the meantime was flushed then.
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
