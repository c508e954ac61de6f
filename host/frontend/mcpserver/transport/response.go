package transport

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeTimeout bounds one write to a client. A client that does not read must not hold up a tool, or the notifications
// to all the others.
const writeTimeout = 30 * time.Second

// Response is a ResponseWriter that bounds writes in time. On event streams it forbids proxies to buffer, and sends
// comments while there is nothing else (WHATWG HTML, section 9.2.7). It is safe for concurrent use.
type Response struct {
	http.ResponseWriter
	control   *http.ResponseController
	keepAlive time.Duration

	// mu guards what follows and serialises writes.
	mu      sync.Mutex
	started bool
	stream  bool
	timer   *time.Timer
	done    bool
}

// NewResponse returns a Response that sends comments at this interval on event streams. Close ends it.
func NewResponse(w http.ResponseWriter, keepAlive time.Duration) *Response {
	r := &Response{ResponseWriter: w, control: http.NewResponseController(w), keepAlive: keepAlive}
	r.setDeadline(time.Time{}) // a call may take its time
	return r
}

// setDeadline bounds the writes that follow. Recorders in tests do not support deadlines; elsewhere a write reports a
// broken connection.
func (r *Response) setDeadline(deadline time.Time) { _ = r.control.SetWriteDeadline(deadline) }

// Unwrap lets http.ResponseController find what the inner writer can do.
func (r *Response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *Response) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(status)
}

func (r *Response) start(status int) {
	if r.started {
		return
	}
	r.started = true
	if r.stream = strings.HasPrefix(r.Header().Get("Content-Type"), "text/event-stream"); r.stream {
		r.Header().Set("X-Accel-Buffering", "no")
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *Response) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(http.StatusOK)
	if err := r.write(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Finish writes all there is to write, in one piece. The client may take writeTimeout to read it.
func (r *Response) Finish(status int, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	r.Header().Set("Content-Length", strconv.Itoa(len(data)))
	r.start(status)
	r.setDeadline(time.Now().Add(writeTimeout))
	_, err := r.ResponseWriter.Write(data)
	return err
}

func (r *Response) write(data []byte) error {
	return r.bounded(func() error {
		_, err := r.ResponseWriter.Write(data)
		if err == nil && r.stream && !r.done {
			r.scheduleComment()
		}
		return err
	})
}

// bounded runs what writes to the client. It removes the deadline afterwards: HTTP/2 ends a stream whose deadline
// passes, even when nothing is being written.
func (r *Response) bounded(write func() error) error {
	r.setDeadline(time.Now().Add(writeTimeout))
	defer r.setDeadline(time.Time{})
	return write()
}

func (r *Response) scheduleComment() {
	if r.timer == nil {
		r.timer = time.AfterFunc(r.keepAlive, r.comment)
		return
	}
	r.timer.Reset(r.keepAlive)
}

// FlushError implements what http.ResponseController looks for.
func (r *Response) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start(http.StatusOK)
	return r.bounded(r.control.Flush)
}

func (r *Response) comment() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	if err := r.write([]byte(": keep-alive\n\n")); err == nil {
		_ = r.bounded(r.control.Flush) // the next write reports a broken connection
	}
}

// Close ends the comments. Nothing may be written afterwards but what is still in the server's buffers.
func (r *Response) Close() {
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
