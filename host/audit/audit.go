// Package audit keeps a record of every call and of what operators do, in files that show when somebody has changed them.
//
// A Log is a directory of segments, files of JSON lines. Each line holds the SHA-256 of the one before, so that an edit, a
// deletion or another order breaks the chain; now and then a checkpoint signs the chain so far with Ed25519, so that nobody without the
// key can make another one; and a head, authenticated with the same key, says where the log ends, so that its end cannot be cut off.
// Verify finds all of these. What it cannot find is that the whole directory was put back to an earlier state: for that, keep
// the head that it prints somewhere else and compare.
//
// docs/audit.md describes the format.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Options configures a Log.
type Options struct {
	// Dir is the directory, which is made, for this user alone, if it is missing.
	Dir string
	// Sync makes Append wait until the record is on the disk: it then outlives a loss of power. Otherwise it outlives the end of this
	// process, however that comes, and is on the disk a second later.
	Sync bool
	// SegmentBytes is the size at which a new segment begins, in bytes. Zero means 64 MiB.
	SegmentBytes int64
	// Retain is for how long segments are kept after their last record. Zero means for ever.
	Retain time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Logger receives what happens to the log itself. Nil discards it.
	Logger *slog.Logger
}

const (
	// checkpointEvery and checkpointAfter bound what is not signed yet, in records and in time.
	checkpointEvery = 1000
	checkpointAfter = time.Minute
	// syncAfter is when records are on the disk without Options.Sync.
	syncAfter = time.Second
	// maxRecord bounds one record, in bytes.
	maxRecord = 1 << 20
)

// Log is the audit log. It is safe for concurrent use, also by several processes over one directory.
type Log struct {
	options Options
	key     *key
	flock   *flock.Flock
	stop    chan struct{}
	done    sync.WaitGroup

	// mu guards what follows, and with flock held the files.
	mu       sync.Mutex
	segment  *segment
	headFile *os.File
	chain    chain
	unsigned int  // records since the last checkpoint
	failed   bool // nothing could be written lately
	closed   bool

	// syncing serialises fsync; synced is the last record known to be on the disk.
	syncing sync.Mutex
	synced  uint64
}

// ErrClosed is the error of Append after Close.
var ErrClosed = errors.New("the audit log is closed")

// Open opens the log in options.Dir and makes one if there is none. The caller closes it.
//
// What an earlier process left unfinished in the middle of a record, which it cannot have answered, is cut off; an end that is not
// where the head says is noted in the log. It fails if the directory cannot be used, or if the log's key is missing.
func Open(options *Options) (*Log, error) {
	l := &Log{options: *options, stop: make(chan struct{})}
	if l.options.SegmentBytes == 0 {
		l.options.SegmentBytes = 64 << 20
	}
	if l.options.Now == nil {
		l.options.Now = time.Now
	}
	if l.options.Logger == nil {
		l.options.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	l.flock = flock.New(filepath.Join(l.options.Dir, lockName))
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("audit log %s: %w", l.options.Dir, errors.Join(err, l.release()))
	}
	l.done.Go(l.tend)
	return l, nil
}

// open makes the log ready under the lock.
func (l *Log) open() (err error) {
	if err := l.flock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.flock.Unlock()) }()
	names, err := segments(l.options.Dir)
	if err != nil {
		return err
	}
	if l.key, err = openKey(l.options.Dir, len(names) == 0); err != nil {
		return err
	}
	head, err := readHead(l.options.Dir, l.key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.options.Logger.Error("the head of the audit log cannot be trusted", "dir", l.options.Dir, "err", err)
		head.forged = true
	}
	if l.headFile, err = os.OpenFile(filepath.Join(l.options.Dir, headName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if len(names) == 0 {
		return l.first(head)
	}
	return l.resume(names[len(names)-1], head)
}

// first begins the first segment.
func (l *Log) first(head head) (err error) {
	if l.segment, err = createSegment(l.options.Dir, 1); err != nil {
		return err
	}
	if head.Seq > 0 {
		return l.note(&Event{Type: TypeGap, Gap: &Gap{Seq: head.Seq, Hash: head.Hash}})
	}
	return nil
}

// resume goes on where an earlier process stopped.
func (l *Log) resume(name string, head head) (err error) {
	if l.segment, err = openSegment(l.options.Dir, name); err != nil {
		return err
	}
	cut, err := l.segment.repair()
	if err != nil {
		return err
	}
	if l.chain, err = l.end(); err != nil {
		return err
	}
	if cut > 0 {
		l.options.Logger.Warn("cut an unfinished record off the audit log", "bytes", cut)
		if err := l.note(&Event{Type: TypeRecovered, Bytes: cut}); err != nil {
			return err
		}
	}
	if err := l.countUnsigned(); err != nil {
		return err
	}
	fits, err := l.fits(head)
	if err != nil || fits {
		return err
	}
	l.options.Logger.Error("the end of the audit log is not as it was left", "last", l.chain.seq, "expected", head.Seq)
	return l.note(&Event{Type: TypeGap, Gap: &Gap{Seq: head.Seq, Hash: head.Hash}})
}

// countUnsigned counts the records since the last checkpoint.
func (l *Log) countUnsigned() error {
	for line, err := range l.segment.backward() {
		if err != nil {
			return err
		}
		if bytes.Contains(line, []byte(`"type":"`+TypeCheckpoint+`"`)) {
			return nil
		}
		l.unsigned++
	}
	return nil
}

// fits reports whether the log has the record that the head names. There may be later ones: who wrote them ended before it had moved the head.
func (l *Log) fits(head head) (bool, error) {
	switch {
	case head.forged || head.Seq > l.chain.seq:
		return false, nil
	case head.Seq == 0:
		return l.chain.seq <= 1, nil
	case head.Seq == l.chain.seq:
		return head.Hash == l.chain.hash, nil
	}
	for line, err := range l.segment.backward() {
		if err != nil {
			return false, err
		}
		seq, prev, err := parseLine(line)
		if err != nil || seq == head.Seq+1 {
			return err == nil && prev == head.Hash, nil
		}
	}
	return false, nil
}

// end is the end of the chain. A segment that was begun and not written to goes on from the one before.
func (l *Log) end() (chain, error) {
	c, err := l.segment.tail()
	if err != nil || c.seq > 0 || l.segment.number == 1 {
		return c, err
	}
	before, err := openSegment(l.options.Dir, segmentName(l.segment.number-1))
	if err != nil {
		return chain{}, err
	}
	c, err = before.tail()
	return c, errors.Join(err, before.file.Close())
}

// Append records an event, whose time is set if it is zero. When it returns nil the record outlives this process.
//
// It fails with ErrClosed, with an error of package os when the disk is full or the files are gone, or with ctx's error when
// another process holds the log for too long; then there is no record, and the caller has to decide whether it goes on without.
func (l *Log) Append(ctx context.Context, event *Event) error {
	if event.Time.IsZero() {
		event.Time = l.options.Now()
	}
	body, err := event.encode()
	if err != nil {
		return err
	}
	seq, err := l.append(ctx, body)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if l.options.Sync {
		return l.sync(seq)
	}
	return nil
}

// Ready returns an error if nothing can be recorded at present, so that what could not be recorded need not be begun. After an error of
// Append it tries to write again; else it looks whether the files are still there, which takes microseconds.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	var err error
	if l.failed {
		err = l.locked(l.checkpoint)
	} else {
		_, err = l.segment.grown()
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	l.failed = false
	return nil
}

func (l *Log) append(ctx context.Context, body []byte) (seq uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	defer func() { l.failed = err != nil }()
	if err := l.enter(ctx); err != nil {
		return 0, err
	}
	defer l.leave()
	if err := l.write(body); err != nil {
		return 0, err
	}
	seq = l.chain.seq
	if l.unsigned++; l.unsigned >= checkpointEvery {
		l.warn(l.checkpoint(), "sign the audit log")
	}
	if l.segment.size >= l.options.SegmentBytes {
		l.warn(l.rotate(), "begin a new segment of the audit log")
	}
	return seq, nil
}

// warn reports what failed after the record itself was written; the next record tries it again.
func (l *Log) warn(err error, doing string) {
	if err != nil {
		l.options.Logger.Warn(doing, "err", err)
	}
}

// enter takes the lock among processes, and catches up with what others have written.
func (l *Log) enter(ctx context.Context) error {
	if ok, err := l.flock.TryLock(); errors.Is(err, fs.ErrNotExist) {
		return gone(err)
	} else if err != nil {
		return err
	} else if !ok {
		if _, err := l.flock.TryLockContext(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if err := l.catchUp(); err != nil {
		l.leave()
		return err
	}
	return nil
}

func (l *Log) leave() { l.warn(l.flock.Unlock(), "unlock the audit log") }

// catchUp follows the segments that other processes have written, and repairs what one of them left unfinished.
func (l *Log) catchUp() error {
	for {
		grown, err := l.segment.grown()
		if err != nil || !grown {
			return err
		}
		if _, err := l.segment.repair(); err != nil {
			return err
		}
		before := l.chain.seq
		if l.chain, err = l.segment.tail(); err != nil {
			return err
		}
		l.unsigned += int(l.chain.seq - before)
		if l.chain.last != TypeRotated {
			return nil
		}
		next, err := openSegment(l.options.Dir, segmentName(l.segment.number+1))
		if err != nil {
			return err
		}
		l.warn(l.segment.close(), "close a segment of the audit log")
		l.segment = next
		l.segment.size = 0 // so that it counts as grown
	}
}

// write adds one record to the chain and moves the head. The lock is held.
func (l *Log) write(body []byte) error {
	line := l.chain.line(body)
	if err := l.segment.write(line); err != nil {
		return err
	}
	next := l.chain.after(line)
	if err := writeHead(l.headFile, next, l.key); err != nil {
		return errors.Join(err, l.segment.unwrite(len(line)))
	}
	l.chain = next
	return nil
}

// note writes an event of the log's own.
func (l *Log) note(event *Event) error {
	if event.Time.IsZero() {
		event.Time = l.options.Now()
	}
	body, err := event.encode()
	if err != nil {
		return err
	}
	return l.write(body)
}

// checkpoint signs the chain as it is.
func (l *Log) checkpoint() error {
	now := l.options.Now()
	err := l.note(&Event{Time: now, Type: TypeCheckpoint, Checkpoint: l.key.sign(l.chain.seq+1, l.chain.head(), now)})
	if err == nil {
		l.unsigned = 0
	}
	return err
}

// rotate signs and ends the segment and begins the next one, and removes what is too old.
func (l *Log) rotate() error {
	if err := errors.Join(l.checkpoint(), l.headFile.Sync()); err != nil {
		return err
	}
	next, err := createSegment(l.options.Dir, l.segment.number+1)
	if err != nil {
		return err
	}
	if err := l.note(&Event{Type: TypeRotated}); err != nil {
		return errors.Join(err, next.discard())
	}
	err = l.segment.close()
	l.segment = next
	return errors.Join(err, l.expire())
}

// expire removes segments that are too old, and says so in the log, for Verify begins with what is left.
func (l *Log) expire() error {
	if l.options.Retain == 0 {
		return nil
	}
	names, err := segments(l.options.Dir)
	if err != nil {
		return err
	}
	for _, name := range names[:len(names)-1] {
		info, err := os.Stat(filepath.Join(l.options.Dir, name))
		if err != nil || l.options.Now().Sub(info.ModTime()) < l.options.Retain {
			return err
		}
		if err := l.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) remove(name string) error {
	old, err := openSegment(l.options.Dir, name)
	if err != nil {
		return err
	}
	last, err := old.tail()
	if err := errors.Join(err, old.close()); err != nil {
		return err
	}
	if err := l.note(&Event{Type: TypeRemoved, Removed: &Removed{Segment: name, Seq: last.seq, Hash: last.hash}}); err != nil {
		return err
	}
	return os.Remove(filepath.Join(l.options.Dir, name))
}

// tend signs and flushes what has come since the last time.
func (l *Log) tend() {
	flush, sign := time.NewTicker(syncAfter), time.NewTicker(checkpointAfter)
	defer flush.Stop()
	defer sign.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-flush.C:
			l.warn(l.flush(), "flush the audit log")
		case <-sign.C:
			l.warn(l.Checkpoint(), "sign the audit log")
		}
	}
}

// Checkpoint signs what has been recorded since the last checkpoint; without anything it does nothing. The Log does so by itself every
// minute and every thousand records.
func (l *Log) Checkpoint() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsigned == 0 || l.closed {
		return nil
	}
	return l.locked(l.checkpoint)
}

func (l *Log) locked(f func() error) error {
	if err := l.enter(context.Background()); err != nil {
		return err
	}
	defer l.leave()
	return f()
}

// flush brings to the disk what has been written.
func (l *Log) flush() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return l.flushed()
}

// sync waits until the record seq is on the disk. Records that come meanwhile go there together.
func (l *Log) sync(seq uint64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced >= seq {
		return nil
	}
	if err := l.flushed(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// flushed is flush with syncing held.
func (l *Log) flushed() error {
	l.mu.Lock()
	last, file := l.chain.seq, l.segment.file
	l.mu.Unlock()
	if last == l.synced {
		return nil
	}
	// A segment that has been ended in the meantime was flushed then.
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	l.synced = last
	return nil
}

// Close signs and flushes what is there. It may be called twice.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	var err error
	if l.unsigned > 0 {
		err = l.locked(l.checkpoint)
	}
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	l.done.Wait()
	return errors.Join(err, l.release())
}

func (l *Log) release() error {
	err := l.flock.Close()
	if l.segment != nil {
		err = errors.Join(err, l.segment.close())
	}
	if l.headFile != nil {
		err = errors.Join(err, l.headFile.Close())
	}
	return err
}
