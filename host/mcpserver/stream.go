package mcpserver

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeTimeout bounds one write to a client. A client that does not read must not hold up a tool, or the notifications
// to all the others.
const writeTimeout = 30 * time.Second

// response is the ResponseWriter under the SDK's handlers. It bounds writes in time; on event streams it forbids
// proxies to buffer and sends comments while there is nothing else (WHATWG HTML, section 9.2.7).
type response struct {
	http.ResponseWriter
	control   *http.ResponseController
	keepAlive time.Duration

	// mu guards what follows and serialises writes.
	mu      sync.Mutex
	started bool
	stream  bool
	// plain says that the SDK has answered with a bare JSON body on what is an event stream already.
	plain bool
	timer *time.Timer
	done  bool
	// replica, if not empty, is put into the IDs of requests to the client: see answers.go.
	replica string
	// greeting is sent after what the SDK begins an event stream with.
	greeting []byte
}

func newResponse(w http.ResponseWriter, keepAlive time.Duration) *response {
	r := &response{ResponseWriter: w, control: http.NewResponseController(w), keepAlive: keepAlive}
	r.setDeadline(time.Time{}) // a call may take its time
	return r
}

// setDeadline bounds the writes that follow. Recorders in tests know no deadlines, and elsewhere the writes themselves
// will tell.
func (r *response) setDeadline(deadline time.Time) { _ = r.control.SetWriteDeadline(deadline) }

// Unwrap lets http.ResponseController find what the inner writer can do.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *response) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(status)
}

func (r *response) start(status int) {
	if r.started {
		r.plain = r.stream
		return
	}
	r.started = true
	if r.stream = strings.HasPrefix(r.Header().Get("Content-Type"), "text/event-stream"); r.stream {
		r.Header().Set("X-Accel-Buffering", "no")
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *response) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		r.start(http.StatusOK)
	}
	if r.plain {
		if err := r.write(event(data)); err != nil {
			return 0, err
		}
		return len(data), nil
	}
	sent := data
	if r.stream && r.replica != "" {
		sent = append(taggedEvent(data, r.replica), r.greeting...)
		r.greeting = nil
	}
	if err := r.write(sent); err != nil {
		return 0, err
	}
	return len(data), nil
}

// event frames a JSON message, which holds no line breaks, as a server-sent event.
func event(data []byte) []byte {
	return bytes.Join([][]byte{[]byte("event: message\ndata: "), bytes.TrimSpace(data), []byte("\n\n")}, nil)
}

// finish writes all there is to write, in one piece. The client may take writeTimeout for it.
func (r *response) finish(status int, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	r.Header().Set("Content-Length", strconv.Itoa(len(data)))
	r.start(status)
	r.setDeadline(time.Now().Add(writeTimeout))
	_, err := r.ResponseWriter.Write(data)
	return err
}

func (r *response) write(data []byte) error {
	return r.bounded(func() error {
		_, err := r.ResponseWriter.Write(data)
		if err == nil && r.stream && !r.done {
			r.wake()
		}
		return err
	})
}

// bounded runs what writes to the client. The deadline goes again afterwards: HTTP/2 ends a stream whose deadline
// passes, even when nothing is being written.
func (r *response) bounded(write func() error) error {
	r.setDeadline(time.Now().Add(writeTimeout))
	defer r.setDeadline(time.Time{})
	return write()
}

func (r *response) wake() {
	if r.timer == nil {
		r.timer = time.AfterFunc(r.keepAlive, r.comment)
		return
	}
	r.timer.Reset(r.keepAlive)
}

// FlushError implements what http.ResponseController looks for.
func (r *response) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		r.start(http.StatusOK)
	}
	return r.bounded(r.control.Flush)
}

func (r *response) comment() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	if err := r.write([]byte(": keep-alive\n\n")); err == nil {
		_ = r.bounded(r.control.Flush) // the next write tells of a broken connection
	}
}

// close ends what the response does by itself. Nothing may be written afterwards but what is still in the server's
// buffers.
func (r *response) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.done = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.setDeadline(time.Now().Add(writeTimeout))
}
