package execbroker

import (
	"context"
	"sync"

	"github.com/hako-run/hako/pdk/abi"
)

const (
	// maxStream limits the bytes of each stream that a guest gets. More is dropped while the command continues.
	maxStream = 4 << 20
	// maxOutput limits the bytes that a command may write to both streams together. More stops it.
	maxOutput = 64 << 20
	// maxPiece limits the bytes of one buffered piece.
	maxPiece = 64 << 10
)

// output buffers the output of a command, in its order, until the guest reads it. Output beyond maxStream is dropped,
// so that the command never waits for the guest.
type output struct {
	// flood is called when the command has written more than maxOutput.
	flood func()
	// ready has an element when there is output to read or the output is closed.
	ready chan struct{}

	mu      sync.Mutex // guards the fields below
	pieces  []piece
	total   int
	written [2]int // bytes, to stdout and stderr
	over    bool
}

type piece struct {
	stream int
	data   []byte
}

// streamNames are the names of the streams in abi.ExecExit.
var streamNames = [2]string{"stdout", "stderr"}

// stream is the io.Writer of one output stream.
type stream struct {
	*output
	number int
}

// Write never fails. Bytes beyond the limits are dropped.
func (s stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.total += len(p)
	flooded := s.total > maxOutput
	written := &s.written[s.number-abi.ExecStdout]
	s.store(s.number, p[:min(len(p), max(0, maxStream-*written))])
	*written += len(p)
	s.mu.Unlock()
	s.wake()
	if flooded {
		s.flood()
	}
	return len(p), nil
}

// store appends data. The caller holds mu.
func (o *output) store(number int, data []byte) {
	if n := len(o.pieces); n > 0 && o.pieces[n-1].stream == number && len(o.pieces[n-1].data)+len(data) <= maxPiece {
		o.pieces[n-1].data = append(o.pieces[n-1].data, data...)
		return
	}
	if len(data) > 0 {
		o.pieces = append(o.pieces, piece{number, append([]byte(nil), data...)})
	}
}

// close marks the end of the output.
func (o *output) close() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.wake()
}

func (o *output) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// read waits for output and returns at most capacity bytes of one stream. Stream 0 means the end of the output. It must
// not be called concurrently.
func (o *output) read(ctx context.Context, capacity int) (stream int, data []byte, err error) {
	for {
		if stream, data, done := o.next(capacity); done {
			return stream, data, nil
		}
		select {
		case <-o.ready:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

func (o *output) next(capacity int) (stream int, data []byte, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pieces) == 0 {
		return 0, nil, o.over
	}
	first := &o.pieces[0]
	n := min(capacity, len(first.data))
	stream, data = first.stream, first.data[:n:n]
	if first.data = first.data[n:]; len(first.data) == 0 {
		o.pieces[0] = piece{}
		o.pieces = o.pieces[1:]
	}
	return stream, data, true
}

// truncated returns the names of the streams of which output was dropped.
func (o *output) truncated() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, n := range o.written {
		if n > maxStream {
			names = append(names, streamNames[i])
		}
	}
	return names
}
