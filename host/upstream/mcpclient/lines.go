package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/internal/strictjson"
)

const (
	// messageRate and messageBurst bound the messages per second, and at once, that are no responses: notifications and
	// requests of the server. Further ones wait, with everything after them.
	messageRate, messageBurst = 200, 1000
	// headLength is the part of a too long line that is kept, in bytes: enough to find the request that it answers.
	headLength = 4 << 10
	// maxLine is the longest line that is read to its end, in bytes, unless twice the longest message is more. A longer
	// one ends the connection.
	maxLine = 64 << 20
	// keptBuffer is the largest buffer that is kept for the next line, in bytes.
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

// lines filters what a server sends to the SDK, a stream of lines that are JSON-RPC messages. It drops lines that are
// no messages, which programs write by mistake. It replaces responses that are refused (too large, too many values as
// counted by shape, a repeated key) with errors. It delays messages beyond messageRate. Otherwise they would end the
// connection or flood the host.
type lines struct {
	source *bufio.Reader
	// events reports whether the stream has server-sent events: messages are in "data:" lines, and other lines pass.
	events bool
	// most bounds a line, in bytes.
	most int
	// token marks the questions on the stream of a call, unless it is empty.
	token string
	// noise is called with each line that is no message.
	noise func(line []byte)

	ctx     context.Context // of the connection
	limiter *rate.Limiter
	meter   *meter
	// owed is the number of outstanding responses. Responses that were not requested are limited like other messages.
	owed *atomic.Int64

	pending []byte // still to be read
	buffer  []byte // for one line
	shape   shape  // of the current message
	idle    int    // lines since the last message
}

func newLines(ctx context.Context, source io.Reader, most int, limiter *rate.Limiter, m *meter, owed *atomic.Int64,
	noise func([]byte), events bool) *lines {
	source = counted{source, &m.bytes}
	return &lines{source: bufio.NewReader(source), events: events, most: most, noise: noise, ctx: ctx, limiter: limiter,
		meter: m, owed: owed}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.pending)
	if l.pending = l.pending[n:]; len(l.pending) == 0 {
		l.pending = nil // drops the line with its event
	}
	return n, nil
}

var dataField = []byte("data:")

// next puts another line into pending, or nothing if it drops the line.
func (l *lines) next() error {
	line, problem, err := l.line()
	if err != nil && (len(line) == 0 || errors.Is(err, errEndless)) {
		return err
	}
	rest := line // without the field name
	if l.events {
		data, ok := bytes.CutPrefix(line, dataField)
		if !ok {
			return l.other(line, problem)
		}
		rest = data
	}
	l.idle = 0
	message := bytes.Trim(rest, " \t\r\n") // the white space of JSON alone
	id, answers := glance(message)
	if problem == 0 && repeatsKey(message) {
		problem = codeTwice
	}
	switch {
	case problem != 0:
		l.pending = l.refusal(id, problem)
	case !l.events && len(message) > 0 && (message[0] != '{' || !json.Valid(message)):
		l.noise(message)
	case answers:
		l.pending = append(bytes.Clone(line[:len(line)-len(rest)]), exact(rest)...)
	case len(message) > 0:
		l.pending = line
		if l.token != "" && bytes.Contains(message, []byte("elicitation/create")) {
			l.pending = append(append(bytes.Clone(line[:len(line)-len(rest)]), marked(message, l.token)...), '\n')
		}
	}
	if answers && l.owed.Add(-1) >= 0 {
		return nil
	}
	return l.wait()
}

// other forwards a line of an event that is not data, and limits such lines.
func (l *lines) other(line []byte, problem int64) error {
	if len(bytes.TrimSpace(line)) == 0 {
		l.shape = shape{} // the end of the event
	}
	if problem == 0 {
		l.pending = line
	}
	if l.idle++; l.idle <= idleLines {
		return nil
	}
	return l.wait()
}

// wait delays a server that exceeds messageRate.
func (l *lines) wait() error {
	if l.limiter.Wait(l.ctx) != nil {
		return io.EOF // the connection has ended
	}
	return nil
}

// refusal returns the replacement of a response that is refused (too large, too many values, a repeated key).
func (l *lines) refusal(id json.RawMessage, code int64) []byte {
	line := refusal(id, code)
	if line != nil && l.events {
		line = append(bytes.Clone(dataField), line...)
	}
	return line
}

// line reads a line. If the line is too long or too large, it returns the beginning and the code of the problem.
func (l *lines) line() (line []byte, problem int64, err error) {
	if l.buffer = l.buffer[:0]; cap(l.buffer) > keptBuffer {
		l.buffer = nil
	}
	if !l.events {
		l.shape = shape{}
	}
	before := l.shape.values
	defer func() { l.meter.values.Add(int64(l.shape.values - before)) }()
	for length := 0; ; {
		part, err := l.source.ReadSlice('\n')
		if length += len(part); length > max(maxLine, 2*l.most) {
			return nil, 0, errEndless
		}
		if problem == 0 {
			l.buffer = append(l.buffer, part...)
			if problem = l.exceeds(part); problem != 0 {
				l.buffer = bytes.Clone(l.buffer[:min(len(l.buffer), headLength)])
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.buffer, problem, err
		}
	}
}

// exceeds returns the code of the limit that the line in the buffer, extended by part, exceeds.
func (l *lines) exceeds(part []byte) int64 {
	if len(l.buffer) > l.most {
		return codeTooLarge
	}
	if l.events && len(l.buffer) == len(part) {
		data, ok := bytes.CutPrefix(part, dataField)
		if !ok {
			return 0
		}
		part = data
	}
	if l.shape.add(part); l.shape.tooMuch() {
		return codeTooMuch
	}
	return 0
}

// glance reads the members of a message until it knows whether the message is a response, and to which request. Invalid
// or incomplete messages are no responses.
func glance(data []byte) (id json.RawMessage, answers bool) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return id, false
		}
		switch name.String() {
		case "id":
			value, err := d.ReadValue()
			if err != nil {
				return nil, false
			}
			id = json.RawMessage(value.Clone())
			continue
		case "method":
			return id, false
		case "result", "error":
			if id != nil {
				return id, true
			}
		}
		if d.SkipValue() != nil {
			return id, false
		}
	}
}

// codeResourceNotFound is the code for a missing resource, up to MCP 2025-11-25.
const codeResourceNotFound = -32002

// Codes of the errors that replace a response that is too long, one that holds too many values, and one with a repeated
// key. JSON-RPC leaves them to implementations.
const (
	codeTooLarge = -32000 - 98
	codeTooMuch  = -32000 - 97
	codeTwice    = -32000 - 96
)

// repeatsKey reports whether an object in the message has a key twice. Two readers could see different values.
func repeatsKey(message []byte) bool { return strictjson.Check(message) != nil && json.Valid(message) }

// refusal returns the error response with this id and code as a line, or nil if the id is unknown.
func refusal(id json.RawMessage, code int64) []byte {
	if id == nil {
		return nil
	}
	line, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": refusalText[code]},
	})
	if err != nil {
		return nil
	}
	return append(line, '\n')
}

// refusalText has the error texts by code.
var refusalText = map[int64]string{
	codeTooLarge: "the response is too large",
	codeTooMuch:  fmt.Sprintf("the response has more than %d entries or %d values", maxItems, maxValues),
	codeTwice:    "the response has an object with a duplicate key",
}
