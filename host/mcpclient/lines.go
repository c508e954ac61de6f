package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"
)

const (
	// messageRate is how many messages a second a server may send that answer nothing (notifications and requests of its own), and
	// messageBurst how many at once. More wait, and all that comes after them.
	messageRate, messageBurst = 200, 1000
	// headLength is how much is kept of a line that is too long, in bytes: enough to find what it answers.
	headLength = 4 << 10
)

// newMessageLimiter limits the messages of one connection.
func newMessageLimiter() *rate.Limiter { return rate.NewLimiter(messageRate, messageBurst) }

// lines stands between a server and the SDK. It passes on a stream of lines, each a JSON-RPC message, and keeps three things away that
// would end the connection or flood the host: lines that are no messages, as programs write them by mistake; answers that are too large,
// in whose place goes an error; and more messages than anybody needs.
type lines struct {
	source *bufio.Reader
	// events says that the stream has server-sent events: messages are behind "data:", and other lines pass.
	events bool
	// most is the longest line, in bytes.
	most int
	// token marks the questions on the stream of a call; empty marks none.
	token string
	// noise is told of each line that is no message.
	noise func(line []byte)

	ctx     context.Context // of the connection
	limiter *rate.Limiter

	pending []byte // still to be read
	buffer  []byte // of one line
}

func newLines(ctx context.Context, source io.Reader, most int, limiter *rate.Limiter, noise func([]byte), events bool) *lines {
	return &lines{source: bufio.NewReader(source), events: events, most: most, noise: noise, ctx: ctx, limiter: limiter}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

var dataField = []byte("data:")

// next puts another line into pending, or nothing if it is left out.
func (l *lines) next() error {
	line, tooLong, err := l.line()
	if err != nil && len(line) == 0 {
		return err
	}
	rest := line // without the name of the field
	if l.events {
		data, ok := bytes.CutPrefix(line, dataField)
		if !ok {
			if !tooLong {
				l.pending = line
			}
			return nil
		}
		rest = data
	}
	message := bytes.TrimSpace(rest)
	id, answers := glance(message)
	switch {
	case tooLong:
		l.pending = l.refusal(id)
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
	if !answers && l.limiter.Wait(l.ctx) != nil {
		return io.EOF // the connection has ended
	}
	return nil
}

// refusal takes the place of a line that is too long.
func (l *lines) refusal(id json.RawMessage) []byte {
	line := refusal(id)
	if line != nil && l.events {
		line = append(bytes.Clone(dataField), line...)
	}
	return line
}

// line reads up to the end of a line. Of one that is too long it returns the head.
func (l *lines) line() (line []byte, tooLong bool, err error) {
	l.buffer = l.buffer[:0]
	for {
		part, err := l.source.ReadSlice('\n')
		switch {
		case tooLong:
		case len(l.buffer)+len(part) > l.most:
			tooLong = true
			l.buffer = append(l.buffer, part...)[:min(len(l.buffer)+len(part), headLength)]
		default:
			l.buffer = append(l.buffer, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.buffer, tooLong, err
		}
	}
}

// glance reads the members of a message until it is clear whether it answers a request, and which. What is no message, or part of one,
// answers nothing.
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

// codeResourceNotFound is the code of a resource that is not there, up to MCP 2025-11-25.
const codeResourceNotFound = -32002

// codeTooLarge marks the error that takes the place of an answer that is too large. It is one of those that JSON-RPC leaves to
// implementations.
const codeTooLarge = -32000 - 98

// refusal is the answer with this id that says so, as a line; nil if the id is not known.
func refusal(id json.RawMessage) []byte {
	if id == nil {
		return nil
	}
	line, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": codeTooLarge, "message": "the answer is too large"},
	})
	if err != nil {
		return nil
	}
	return append(line, '\n')
}
