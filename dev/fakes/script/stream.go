package script

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// Stream writes server-sent events (html.spec.whatwg.org/multipage/server-sent-events.html).
type Stream struct {
	w http.ResponseWriter
	r *http.Request
}

// NewStream answers r with a stream.
func NewStream(w http.ResponseWriter, r *http.Request) *Stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &Stream{w, r}
}

// Send sends data as JSON in an event; name may be empty.
func (s *Stream) Send(name string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		panic(err) // data is a fake's own
	}
	s.SendText(name, string(body))
}

// SendText sends one line of text in an event.
func (s *Stream) SendText(name, text string) {
	if name != "" {
		_, _ = fmt.Fprintf(s.w, "event: %s\n", name)
	}
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", text)
	_ = http.NewResponseController(s.w).Flush()
}

// Sleep waits for d, or until the client is gone: then it ends the answer.
func (s *Stream) Sleep(d time.Duration) {
	if retry.Wait(s.r.Context(), d) != nil {
		panic(http.ErrAbortHandler)
	}
}

// Break ends the answer in the middle: the connection is closed.
func (s *Stream) Break() { panic(http.ErrAbortHandler) }
