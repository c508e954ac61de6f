package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/time/rate"
)

const (
	// messageRate and messageBurst bound the messages per second, and at once, that are no responses: notifications and
	// requests of the server. Further ones wait, with everything after them.
	messageRate, messageBurst = 200, 1000
	// headLength is the part of a message that is kept if it exceeds a limit, in bytes: enough to find the request that
	// it answers.
	headLength = 4 << 10
	// maxLine is the longest line that is read to its end, in bytes, unless twice the longest message is more. A longer
	// one ends the connection.
	maxLine = 64 << 20
	// keptBuffer is the largest buffer that is kept for the next message, in bytes.
	keptBuffer = 64 << 10
	// idleLines is the number of lines between two messages that are not delayed: names of events, comments, empty
	// lines.
	idleLines = 16
)

// errEndless ends a connection.
var errEndless = errors.New("it sent a line that is too long")

// newMessageLimiter limits the messages of one connection.
func newMessageLimiter() *rate.Limiter { return rate.NewLimiter(messageRate, messageBurst) }

// meter counts what a server sent: bytes, and values in messages.
type meter struct{ bytes, values atomic.Int64 }

// stream reads messages from a server's byte stream, of lines or of server-sent events, for the SDK. Messages that the
// SDK could not decode do not pass (inbound). Responses that exceed a limit become errors. It delays messages beyond
// messageRate. Otherwise they would end the connection or flood the host.
type stream struct {
	inbound
	source *bufio.Reader
	// most bounds a message, in bytes.
	most    int
	ctx     context.Context // of the connection
	limiter *rate.Limiter
	meter   *meter

	pending []byte // still to be read
	buffer  []byte // the current message as far as it was read
	length  int    // of the current message, also beyond the limit
	shape   shape  // of the current message
	problem int64  // the code of the limit that it exceeds, or zero
	err     error  // follows after pending
}

func newStream(ctx context.Context, source io.Reader, most int, limiter *rate.Limiter, m *meter, in inbound) stream {
	return stream{inbound: in, source: bufio.NewReader(counted{source, &m.bytes}), most: most, ctx: ctx,
		limiter: limiter, meter: m}
}

// read reads from pending, which next fills or leaves empty.
func (s *stream) read(p []byte, next func() error) (int, error) {
	for len(s.pending) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.err = next()
	}
	n := copy(p, s.pending)
	if s.pending = s.pending[n:]; len(s.pending) == 0 {
		s.pending = nil // drops the message with its buffer
	}
	return n, nil
}

// reset begins the next message.
func (s *stream) reset() {
	s.meter.values.Add(int64(s.shape.values))
	if s.buffer = s.buffer[:0]; cap(s.buffer) > keptBuffer {
		s.buffer = nil
	}
	s.length, s.problem, s.shape = 0, 0, shape{}
}

// count counts bytes of the message, also of what is not added.
func (s *stream) count(n int) error {
	if s.length += n; s.length > max(maxLine, 2*s.most) {
		return errEndless
	}
	return nil
}

// add adds the next part of the message, unless it exceeds a limit.
func (s *stream) add(part []byte) error {
	if err := s.count(len(part)); err != nil || s.problem != 0 {
		return err
	}
	s.buffer = append(s.buffer, part...)
	s.shape.add(part)
	switch {
	case len(s.buffer) > s.most:
		s.problem = codeTooLarge
	case s.shape.tooMuch():
		s.problem = codeTooMuch
	default:
		return nil
	}
	s.buffer = bytes.Clone(s.buffer[:min(len(s.buffer), headLength)])
	return nil
}

// take returns the messages in the text that was added, and delays those that are no responses.
func (s *stream) take() (messages, error) {
	defer s.reset()
	var m messages
	if s.problem != 0 {
		m = s.tooMuch(s.buffer, s.problem)
	} else {
		m = s.inbound.read(s.buffer)
	}
	for range max(1, len(m.list)) - m.answers {
		if err := s.wait(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// wait delays a server that exceeds messageRate.
func (s *stream) wait() error {
	if s.limiter.Wait(s.ctx) != nil {
		return io.EOF // the connection has ended
	}
	return nil
}

// lineReader is a stream with one message in each line.
type lineReader struct{ stream }

func (l *lineReader) Read(p []byte) (int, error) { return l.read(p, l.next) }

// next puts the messages of the next line into pending.
func (l *lineReader) next() error {
	for {
		part, err := l.source.ReadSlice('\n')
		if long := l.add(part); long != nil {
			return long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && l.length == 0 {
			return err
		}
		m, ended := l.take()
		for _, message := range m.list {
			l.pending = append(append(l.pending, message...), '\n')
		}
		return ended
	}
}

// eventReader is a stream of server-sent events (HTML, 9.2). What passes is normalized: lines end with a line feed, and the
// data of an event are in one line. Of the fields only data, id and retry pass; events with a name other than message
// lose their data, which the SDK ignores.
type eventReader struct {
	stream
	line   []byte // the beginning of a line that is not data
	fields []byte // the lines id and retry of the current event
	name   string
	nextID string // of the current event
	inData bool   // in a line of data
	data   bool   // the event has data
	cr     bool   // the last line ended with a carriage return
	begun  bool   // the first line is over
	idle   int    // lines since the last message

	// request is the open request that the stream must answer, or nil. lastID is the last id of an event, with which the
	// stream can be resumed. numbered is called at each new one, unless it is nil.
	request  *int64
	lastID   string
	numbered func()
}

func (e *eventReader) Read(p []byte) (int, error) { return e.read(p, e.next) }

// next reads a part of a line. At the end of an event it puts the event into pending.
func (e *eventReader) next() error {
	part, whole, err := e.part()
	if err != nil {
		if ended := e.dispatch(); ended != nil {
			return ended
		}
		e.unanswered()
		return err
	}
	if !e.inData {
		if part, err = e.beginLine(part, whole); err != nil {
			return err
		}
	}
	if e.inData {
		err = e.add(part)
	} else {
		err = e.count(len(part))
	}
	switch {
	case err != nil || !whole:
		return err
	case e.inData:
		e.inData = false
		return nil
	}
	defer func() { e.line = e.line[:0] }()
	return e.field()
}

// beginLine adds a part to the beginning of a line, until that shows whether the line is data. It returns the rest.
func (e *eventReader) beginLine(part []byte, whole bool) (rest []byte, err error) {
	head := part[:max(0, min(len(part), headLength-len(e.line)))]
	e.line = append(e.line, head...)
	if !e.begun && (len(e.line) >= len(byteOrderMark) || whole) {
		e.line, e.begun = bytes.TrimPrefix(e.line, []byte(byteOrderMark)), true
	}
	value, ok := bytes.CutPrefix(e.line, dataField)
	if !ok {
		return part[len(head):], nil
	}
	if err = e.count(len(dataField)); err == nil && e.data {
		err = e.add([]byte{'\n'})
	}
	e.inData, e.data = true, true
	if err == nil {
		err = e.add(value)
	}
	e.line = e.line[:0]
	return part[len(head):], err
}

const byteOrderMark = "\ufeff"

var dataField = []byte("data:")

// part returns the next part of a line without its end, which may be a line feed, a carriage return or both. whole
// reports whether the line is complete.
func (e *eventReader) part() (part []byte, whole bool, err error) {
	if _, err := e.source.Peek(1); err != nil {
		return nil, false, err
	}
	part, _ = e.source.Peek(e.source.Buffered())
	skipped := 0
	if e.cr && part[0] == '\n' {
		part, skipped = part[1:], 1
	}
	e.cr = false
	end := bytes.IndexAny(part, "\r\n")
	if whole = end >= 0; !whole {
		_, err = e.source.Discard(skipped + len(part))
		return part, false, err
	}
	e.cr = part[end] == '\r'
	_, err = e.source.Discard(skipped + end + 1)
	return part[:end], true, err
}

// field handles a line that is not data, and limits such lines.
func (e *eventReader) field() error {
	name, value, _ := bytes.Cut(e.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(e.line) == 0:
		return e.dispatch()
	case string(name) == "event":
		e.name = string(value)
	case string(name) == "id" || string(name) == "retry":
		if string(name) == "id" {
			e.nextID = string(value)
		}
		if room := headLength - len(e.fields); room > len(e.line) {
			e.fields = fmt.Appendf(e.fields, "%s: %s\n", name, value)
		}
	}
	if e.idle++; e.idle <= idleLines {
		return nil
	}
	return e.wait()
}

// dispatch puts the event into pending.
func (e *eventReader) dispatch() error {
	if e.nextID != "" {
		if e.numbered != nil && e.nextID != e.lastID {
			e.numbered()
		}
		e.lastID, e.nextID = e.nextID, ""
	}
	var m messages
	var err error
	switch {
	case e.data && (e.name == "" || e.name == "message") && (len(bytes.TrimSpace(e.buffer)) > 0 || e.problem != 0):
		e.idle = 0
		m, err = e.take()
	default:
		e.reset()
		if e.idle++; e.idle > idleLines {
			err = e.wait()
		}
	}
	e.pending = append(e.pending, e.fields...)
	for i, message := range m.list {
		if i > 0 {
			e.pending = append(e.pending, '\n')
		}
		e.pending = append(e.pending, "data: "...)
		for _, c := range message { // line ends are white space between the values
			if c == '\n' || c == '\r' {
				c = ' '
			}
			e.pending = append(e.pending, c)
		}
		e.pending = append(e.pending, '\n')
	}
	if len(e.pending) > 0 {
		e.pending = append(e.pending, '\n')
	}
	e.fields, e.name, e.data = e.fields[:0], "", false
	return err
}

// unanswered answers the request of a stream that ends without a response and cannot be resumed, if something else came.
func (e *eventReader) unanswered() {
	if e.request == nil || e.lastID != "" {
		return
	}
	if odd := e.requests.takeOdd(); odd != "" {
		e.pending = append(append(e.pending, "data: "...), refusal(*e.request, codeInvalid,
			"the stream ended with this instead: "+odd)...)
		e.pending = append(e.pending, "\n\n"...)
		e.request = nil
	}
}
