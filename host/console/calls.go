package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// flushEvery is how often a stream is written to.
	flushEvery = 200 * time.Millisecond
	// heartbeat keeps proxies from giving an idle stream up. With it, the session is looked at again.
	heartbeat = 15 * time.Second
	// writeTime is how long a reader may take for what is written at once.
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

// follow writes what happens until the stream ends, or its reader is gone or too slow.
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
			out.comment()
			out.flush()
		case <-flush.C:
			if s.drain(out) {
				out.flush()
			}
		}
	}
}

// still reports whether the session is there, and its person has the role that the stream was opened with. It does not
// count as use of the session.
func (c *Console) still(q *request) bool {
	now := c.now()
	s, err := c.sessions.find(q.Context(), q.secret, now)
	if err != nil {
		return q.Context().Err() == nil && now.Before(q.session.expires) // the store is gone for a moment
	}
	return s != nil && c.logins.Load().admit(&s.Person, s.proof, now) == nil && s.Role == q.session.Role
}

// drain writes what has happened since the last time, and reports whether there was anything.
func (s *stream) drain(out *eventWriter) (any bool) {
	for range len(s.calls) {
		e := <-s.calls
		out.id(e.ID)
		out.event("call", e)
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

// eventWriter writes events. After an error it writes nothing more.
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

func (e *eventWriter) id(id uint64) { e.write("id: %d\n", id) }

func (e *eventWriter) comment() { e.write(":\n\n") }

// event writes an event. JSON has no line ends, so that nobody's text can make an event of its own.
func (e *eventWriter) event(name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		e.err = err
		return
	}
	e.write("event: %s\ndata: %s\n\n", name, encoded)
}

// end tells the reader why there is no more.
func (e *eventWriter) end(reason string) {
	e.event("end", map[string]string{"reason": reason})
	e.flush()
}

// flush sends what was written, and gives what comes next its time.
func (e *eventWriter) flush() {
	if e.err == nil {
		e.err = e.control.Flush()
	}
	// Where the deadline cannot be set, the server's own holds.
	_ = e.control.SetWriteDeadline(time.Now().Add(heartbeat + writeTime))
}
