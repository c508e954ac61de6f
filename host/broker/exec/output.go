package execbroker

import (
	"context"
	"sync"

	"github.com/hako-run/hako/pdk/abi"
)

const (
	// maxStream is how many bytes of each stream a guest gets; more is dropped, while the command goes on.
	maxStream = 4 << 20
	// maxOutput is how many bytes a command may write to both streams together; more ends it.
	maxOutput = 64 << 20
	// maxPiece is the most bytes that wait in one piece.
	maxPiece = 64 << 10
)

// output keeps what a command writes until the guest reads it, in the order in which it came. What does not fit is dropped, so that the
// command never waits for the guest.
type output struct {
	// flood is called when the command has written more than it may.
	flood func()
	// news has an element when there is something to read, or nothing more will come.
	news chan struct{}

	mu      sync.Mutex // guards what follows
	pieces  []piece
	total   int
	written [2]int // to stdout and stderr
	over    bool
}

type piece struct {
	stream int
	data   []byte
}

// streamNames are those of the streams, as abi.ExecExit has them.
var streamNames = [2]string{"stdout", "stderr"}

func newOutput(flood func()) *output { return &output{flood: flood, news: make(chan struct{}, 1)} }

// stream is the end of one of the streams that the command writes to.
type stream struct {
	*output
	number int
}

// Write takes everything.
func (s stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.total += len(p)
	flooded := s.total > maxOutput
	written := &s.written[s.number-abi.ExecStdout]
	s.keep(s.number, p[:min(len(p), max(0, maxStream-*written))])
	*written += len(p)
	s.mu.Unlock()
	s.wake()
	if flooded {
		s.flood()
	}
	return len(p), nil
}

// keep appends data. mu is held.
func (o *output) keep(number int, data []byte) {
	if n := len(o.pieces); n > 0 && o.pieces[n-1].stream == number && len(o.pieces[n-1].data)+len(data) <= maxPiece {
		o.pieces[n-1].data = append(o.pieces[n-1].data, data...)
		return
	}
	if len(data) > 0 {
		o.pieces = append(o.pieces, piece{number, append([]byte(nil), data...)})
	}
}

// end says that no more will come.
func (o *output) end() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.wake()
}

func (o *output) wake() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// read waits for output and returns at most capacity bytes of one stream; stream 0 means that no more will come. One goroutine reads.
func (o *output) read(ctx context.Context, capacity int) (stream int, data []byte, err error) {
	for {
		if stream, data, done := o.next(capacity); done {
			return stream, data, nil
		}
		select {
		case <-o.news:
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

// cut are the names of the streams of which something was dropped.
func (o *output) cut() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, n := range o.written {
		if n > maxStream {
			names = append(names, streamNames[i])
		}
	}
	return names
}
