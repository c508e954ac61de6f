package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// flushEvery is the interval at which events are written to a stream.
	flushEvery = 200 * time.Millisecond
	// heartbeat is the interval of events on an idle stream, so that proxies keep it open. Each also checks the
	// session.
	heartbeat = 15 * time.Second
	// writeTime bounds the time in which a reader must accept a write.
	writeTime = 10 * time.Second
)

// calls serves the stream of events (server-sent events, HTML Standard, section 9.2).
func (c *Console) calls(w http.ResponseWriter, q *request) error {
	s, leave, err := c.options.Traffic.hub.open(q.session)
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	out.event("hello", map[string]any{"role": q.session.Role})
	c.follow(q, s, out)
	return nil
}

// follow writes events until the stream ends, or its reader is gone or too slow.
func (c *Console) follow(q *request, s *stream, out *eventWriter) {
	flush, beat := time.NewTicker(flushEvery), time.NewTicker(heartbeat)
	defer flush.Stop()
	defer beat.Stop()
	out.flush()
	for out.err == nil {
		select {
		case <-q.Context().Done():
			return
		case reason := <-s.ended:
			out.end(reason)
			return
		case <-beat.C:
			if !c.still(q) {
				out.end(endExpired)
				return
			}
			out.write(":\n\n")
			out.flush()
		case <-flush.C:
			if s.drain(out) {
				out.flush()
			}
		}
	}
}

// still reports whether the session exists and its person still has the role with which the stream was opened. It does
// not count as use of the session.
func (c *Console) still(q *request) bool {
	now := c.now()
	s, err := c.sessions.find(q.Context(), q.secret, now)
	if err != nil {
		return q.Context().Err() == nil && now.Before(q.session.expires) // a short outage of the store
	}
	return s != nil && c.logins.Load().admit(&s.Person, s.proof, now) == nil && s.Role == q.session.Role
}

// drain writes the pending events and reports whether there were any.
func (s *stream) drain(out *eventWriter) (any bool) {
	if s.started.Swap(false) {
		out.event("started", struct{}{})
		any = true
	}
	for range len(s.calls) {
		out.event("call", <-s.calls)
		any = true
	}
	if n := s.dropped.Swap(0); n > 0 {
		out.event("dropped", map[string]int64{"count": n})
		any = true
	}
	if n := s.approvals.Swap(0); n > 0 {
		out.event("approvals", map[string]int64{"waiting": n - 1})
		any = true
	}
	if s.plugins.Swap(false) {
		out.event("plugins", struct{}{})
		any = true
	}
	return any
}

// eventWriter writes events. After an error it writes nothing.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (e *eventWriter) write(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, format, args...)
	}
}

// event writes an event. JSON has no line breaks, so a text cannot forge an event.
func (e *eventWriter) event(name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		e.err = err
		return
	}
	e.write("event: %s\ndata: %s\n\n", name, encoded)
}

// end writes the reason for the end of the stream.
func (e *eventWriter) end(reason string) {
	e.event("end", map[string]string{"reason": reason})
	e.flush()
}

// flush sends the written events and sets the next deadline.
func (e *eventWriter) flush() {
	if e.err == nil {
		e.err = e.control.Flush()
	}
	// If the deadline cannot be set, the server's own applies.
	_ = e.control.SetWriteDeadline(time.Now().Add(heartbeat + writeTime))
}
