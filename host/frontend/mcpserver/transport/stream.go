package transport

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/internal/bytepool"
)

// errRejected is the error with which the SDK learns that a message cannot be delivered. The SDK recognises the code;
// every other error of a write would end the session.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "the client cannot receive this message"}

// EventLog keeps what is sent on a stream, for a client that loses its connection (MCP 2025-11-25, transports,
// resumability and redelivery).
type EventLog interface {
	// ID is the stream's name. It begins the IDs of its events.
	ID() string
	// Append keeps an event. last reports whether it is the last one.
	Append(number int, data []byte, last bool)
}

// Stream answers the requests of one HTTP request: with one JSON message, or with server-sent events. Its methods are
// safe for concurrent use.
type Stream struct {
	// mu guards what follows and serialises writes.
	mu      sync.Mutex
	w       http.ResponseWriter // nil when the client has left
	started bool
	// events reports whether messages are sent as server-sent events.
	events bool
	// pending counts the requests without an answer. A standalone stream has none, and does not end with its answers.
	pending    int
	standalone bool
	// log keeps the events; nil keeps none. number is that of the next event.
	log    EventLog
	number int
	// numbered reports whether events have IDs.
	numbered bool
	// done is made when somebody waits for it. It is closed when the stream is released.
	done            chan struct{}
	released, ended bool
}

// NewJSON returns a stream that answers one request with a JSON body. It has no room for other messages.
func NewJSON(w http.ResponseWriter) *Stream {
	return &Stream{w: w, pending: 1}
}

// NewEvents returns a stream that answers so many requests with server-sent events.
func NewEvents(w http.ResponseWriter, requests int) *Stream {
	return &Stream{w: w, events: true, pending: requests}
}

// Keep has the events kept in log. With prime, the stream begins with an event that tells the client its ID, as clients
// from 2025-11-25 on expect.
func (s *Stream) Keep(log EventLog, prime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.numbered = log, true
	if prime {
		_ = s.write(
			http.StatusOK,
			eventStream,
			fmt.Appendf(nil, "event: prime\nid: %s_%d\ndata: \n\n", log.ID(), s.number),
			false,
		)
		s.number++
	}
}

// NewStandalone returns a session's own event stream. With numbered, its events have IDs.
func NewStandalone(w http.ResponseWriter, numbered bool) *Stream {
	return &Stream{w: w, events: true, standalone: true, numbered: numbered}
}

// Begin sends the header of a standalone stream, and these messages.
func (s *Stream) Begin(messages ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Proxies hold back the header until there is data.
	_ = s.write(http.StatusOK, eventStream, []byte(": ok\n\n"), false)
	for _, data := range messages {
		_ = s.write(http.StatusOK, eventStream, Event(data), false) // a client that has left misses nothing
	}
}

// Done is closed when the requests are answered, or the stream is closed.
func (s *Stream) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.released {
			close(s.done)
		}
	}
	return s.done
}

// Send sends a notification or a request to the client. It fails if the stream has ended or cannot carry it.
func (s *Stream) Send(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.events {
		return errRejected
	}
	return s.sendEvent(false, func(dst []byte) []byte { return append(dst, data...) })
}

// Answer sends the answer to one of the requests, which message appends to a buffer; with the last one the stream ends.
// status is the HTTP status if the answer is the only message of the response. An answer with another status than 200
// is never an event, unless events were sent before it.
func (s *Stream) Answer(status int, message func(dst []byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errRejected
	}
	s.pending--
	last := s.pending <= 0 && !s.standalone
	s.ended = last
	if last {
		defer s.release()
	}
	if s.events && (s.started || status == http.StatusOK) {
		return s.sendEvent(last, message)
	}
	return s.writeBuffered(status, "application/json", true, message)
}

// writeBuffered is write for data that message appends to a buffer, and that nobody keeps. The caller holds mu.
func (s *Stream) writeBuffered(status int, contentType string, last bool, message func(dst []byte) []byte) error {
	if s.w == nil {
		return errRejected // nobody is left to encode the message for
	}
	buffer := bytepool.Get()
	*buffer = message(*buffer)
	err := s.write(status, contentType, *buffer, last)
	if err == nil { // after an error HTTP/2 may still read from it
		bytepool.Put(buffer)
	}
	return err
}

// CloseForResumption ends the HTTP response before the answer, and sends a client that can resume the stream the time
// to do so.
func (s *Stream) CloseForResumption(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !s.events {
		return
	}
	if retry > 0 {
		event := fmt.Appendf(nil, "event: close\nretry: %d\ndata: \n\n", retry.Milliseconds())
		_ = s.write(http.StatusOK, eventStream, event, false)
	}
	s.w = nil
	s.release()
}

// Detach ends the use of the ResponseWriter. What comes later is only kept.
func (s *Stream) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = nil
}

// release lets go whoever waits for the stream. The caller holds mu.
func (s *Stream) release() {
	if s.done != nil && !s.released {
		close(s.done)
	}
	s.released = true
}

// sendEvent keeps and sends a message as an event. The caller holds mu.
func (s *Stream) sendEvent(last bool, message func(dst []byte) []byte) error {
	number := s.number
	s.number++
	if s.log == nil {
		return s.writeBuffered(http.StatusOK, eventStream, last, func(dst []byte) []byte {
			dst = append(dst, "event: message\n"...)
			if s.numbered {
				dst = fmt.Appendf(dst, "id: _%d\n", number)
			}
			return append(message(append(dst, "data: "...)), "\n\n"...)
		})
	}
	event := fmt.Appendf(nil, "event: message\nid: %s_%d\ndata: ", s.log.ID(), number)
	head := len(event)
	event = message(event)
	s.log.Append(number, event[head:], last)
	_ = s.write(http.StatusOK, eventStream, append(event, "\n\n"...), last) // whoever has left can fetch it
	return nil
}

// write writes a part of the response, or with last all of it if it is the first. A client that cannot be reached is no
// failure of the session. The caller holds mu.
func (s *Stream) write(status int, contentType string, data []byte, last bool) error {
	if s.w == nil {
		return errRejected
	}
	var err error
	whole, isResponse := s.w.(*Response)
	if !s.started {
		h := s.w.Header()
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("Content-Type", contentType)
		if s.events {
			h.Set("Connection", "keep-alive")
		}
	}
	if !s.started && last && isResponse {
		err = whole.Finish(status, data)
	} else {
		if !s.started {
			s.w.WriteHeader(status)
		}
		if _, err = s.w.Write(data); err == nil {
			err = http.NewResponseController(s.w).Flush()
		}
	}
	s.started = true
	if err != nil {
		s.w = nil
		return errRejected
	}
	return nil
}

// Event frames a JSON message, which holds no line breaks, as a server-sent event.
func Event(data []byte) []byte {
	return bytes.Join([][]byte{[]byte("event: message\ndata: "), bytes.TrimSpace(data), []byte("\n\n")}, nil)
}

const eventStream = "text/event-stream"

type streamKey struct{}

// WithStream returns a context whose messages to the client go to s.
func WithStream(ctx context.Context, s *Stream) context.Context {
	return context.WithValue(ctx, streamKey{}, s)
}

func streamOf(ctx context.Context) *Stream {
	s, _ := ctx.Value(streamKey{}).(*Stream)
	return s
}
