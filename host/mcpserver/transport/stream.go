package transport

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// errRejected is how a connection tells the SDK that a message cannot be delivered. The SDK recognises the code; every
// other error of a write would end the session.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "the client cannot receive this message"}

// EventLog keeps what is sent on a stream, for a client that loses its connection (MCP 2025-11-25, transports,
// resumability and redelivery).
type EventLog interface {
	// ID is the stream's name. It begins the IDs of its events.
	ID() string
	// Append keeps an event. last says that it is the last one.
	Append(number int, data []byte, last bool)
}

// Stream answers the requests of one HTTP request: with one JSON message, or with server-sent events. Its methods are
// safe for concurrent use.
type Stream struct {
	// mu guards what follows and serialises writes.
	mu      sync.Mutex
	w       http.ResponseWriter // nil when the client has left
	started bool
	// events says that messages are sent as server-sent events.
	events bool
	// pending is how many requests are not answered. A standalone stream has none, and does not end with its answers.
	pending    int
	standalone bool
	// log keeps the events; nil keeps none. number is that of the next event.
	log    EventLog
	number int
	// numbered says that events have IDs.
	numbered bool
	done     chan struct{}
	ended    bool
}

// NewJSON returns a stream that answers one request with a JSON body. It has no room for other messages.
func NewJSON(w http.ResponseWriter) *Stream {
	return &Stream{w: w, pending: 1, done: make(chan struct{})}
}

// NewEvents returns a stream that answers so many requests with server-sent events.
func NewEvents(w http.ResponseWriter, requests int) *Stream {
	return &Stream{w: w, events: true, pending: requests, done: make(chan struct{})}
}

// Keep has the events kept in log. With prime, the stream begins with an event that tells the client its ID, as clients
// from 2025-11-25 on expect.
func (s *Stream) Keep(log EventLog, prime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.numbered = log, true
	if prime {
		_ = s.writeEvent([]byte(fmt.Sprintf("event: prime\nid: %s_%d\ndata: \n\n", log.ID(), s.number)), false)
		s.number++
	}
}

// NewStandalone returns a session's own event stream. With numbered, its events have IDs.
func NewStandalone(w http.ResponseWriter, numbered bool) *Stream {
	return &Stream{w: w, events: true, standalone: true, numbered: numbered, done: make(chan struct{})}
}

// Begin sends the header of a standalone stream, and these messages.
func (s *Stream) Begin(messages ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Proxies hold back the header until there is data.
	_ = s.writeEvent([]byte(": ok\n\n"), false)
	for _, data := range messages {
		_ = s.writeEvent(Event(data), false) // a client that has left misses nothing
	}
}

// Done is closed when the requests are answered, or the stream is closed.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Send sends a notification or a request to the client. It fails if the stream has ended or cannot carry it.
func (s *Stream) Send(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.events {
		return errRejected
	}
	return s.deliver(data, false)
}

// Answer sends the answer to one of the requests; with the last one the stream ends. status is the HTTP status where the
// answer is the only message of the response. An answer with another status than 200 is never an event, unless events
// were sent before it.
func (s *Stream) Answer(data []byte, status int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errRejected
	}
	s.pending--
	last := s.pending <= 0 && !s.standalone
	if last {
		defer s.end()
	}
	if s.events && (s.started || status == http.StatusOK) {
		return s.deliver(data, last)
	}
	s.started = true
	if s.w == nil {
		return errRejected
	}
	s.setHeader("application/json")
	if s.events {
		s.w.Header().Set("Connection", "keep-alive")
	}
	return s.finish(status, data)
}

// CloseForResumption ends the HTTP response before the answer, and tells a client that can resume the stream when to do
// so.
func (s *Stream) CloseForResumption(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.events {
		return
	}
	if retry > 0 {
		_ = s.writeEvent([]byte(fmt.Sprintf("event: close\nretry: %d\ndata: \n\n", retry.Milliseconds())), false)
	}
	s.w = nil
	s.closeDone()
}

// Detach ends the use of the ResponseWriter. What comes later is only kept.
func (s *Stream) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = nil
}

// Close ends a stream whatever is pending.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *Stream) end() {
	s.ended = true
	s.closeDone()
}

func (s *Stream) closeDone() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}

// deliver keeps and sends a message as an event.
func (s *Stream) deliver(data []byte, last bool) error {
	number := s.number
	s.number++
	if s.log != nil {
		s.log.Append(number, data, last)
	}
	if s.w == nil {
		if s.log != nil {
			return nil
		}
		return errRejected
	}
	id := ""
	if s.numbered {
		name := ""
		if s.log != nil {
			name = s.log.ID()
		}
		id = fmt.Sprintf("id: %s_%d\n", name, number)
	}
	event := make([]byte, 0, len(data)+len(id)+32)
	event = append(event, "event: message\n"...)
	event = append(event, id...)
	event = append(event, "data: "...)
	event = append(event, bytes.TrimSpace(data)...)
	event = append(event, "\n\n"...)
	return s.writeEvent(event, last)
}

// writeEvent writes an event, which is the only one of the response if it is the first and last.
func (s *Stream) writeEvent(event []byte, last bool) error {
	if s.w == nil {
		return errRejected
	}
	if s.started {
		if _, err := s.w.Write(event); err != nil {
			return s.lost()
		}
		if err := http.NewResponseController(s.w).Flush(); err != nil {
			return s.lost()
		}
		return nil
	}
	s.started = true
	s.setHeader("text/event-stream")
	s.w.Header().Set("Connection", "keep-alive")
	if last {
		return s.finish(http.StatusOK, event)
	}
	s.w.WriteHeader(http.StatusOK)
	return s.writeEvent(event, false)
}

func (s *Stream) setHeader(contentType string) {
	s.w.Header().Set("Cache-Control", "no-cache, no-transform")
	s.w.Header().Set("Content-Type", contentType)
}

// finish writes the whole body.
func (s *Stream) finish(status int, body []byte) error {
	if whole, ok := s.w.(*Response); ok {
		if whole.Finish(status, body) != nil {
			return s.lost()
		}
		return nil
	}
	s.w.WriteHeader(status)
	if _, err := s.w.Write(body); err != nil {
		return s.lost()
	}
	return nil
}

// lost notes that the client cannot be reached. That is no failure of the session.
func (s *Stream) lost() error {
	s.w = nil
	if s.log != nil {
		return nil
	}
	return errRejected
}

// Event frames a JSON message, which holds no line breaks, as a server-sent event.
func Event(data []byte) []byte {
	return bytes.Join([][]byte{[]byte("event: message\ndata: "), bytes.TrimSpace(data), []byte("\n\n")}, nil)
}

type streamKey struct{}

// WithStream returns a context whose messages to the client go to s.
func WithStream(ctx context.Context, s *Stream) context.Context {
	return context.WithValue(ctx, streamKey{}, s)
}

func streamOf(ctx context.Context) *Stream {
	s, _ := ctx.Value(streamKey{}).(*Stream)
	return s
}
