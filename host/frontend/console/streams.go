package console

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hako-run/hako/host/manifest"
)

// Reasons for the end of a stream.
const (
	endLogout   = "logout"
	endExpired  = "expired"
	endRevoked  = "revoked" // by another configuration
	endShutdown = "shutdown"
)

const (
	// maxStreams bounds all streams, maxStreamsPerPerson those of one person.
	maxStreams          = 64
	maxStreamsPerPerson = 8
	// streamQueue bounds the calls that wait for one reader. It is emptied several times a second. Further calls are
	// dropped and counted.
	streamQueue = 40
)

// hub forwards events to streams. It never waits for them. It is safe for concurrent use.
type hub struct {
	count atomic.Int64 // number of streams, which is zero most of the time

	mu      sync.Mutex
	streams map[*stream]bool
}

// stream is one reader.
type stream struct {
	session *session
	calls   chan *callEvent
	dropped atomic.Int64
	// started reports whether calls have started.
	started atomic.Bool
	// approvals is the number of waiting questions plus 1, or 0 if it was written. plugins reports whether plugins have
	// changed.
	approvals atomic.Int64
	plugins   atomic.Bool
	// ended receives the reason.
	ended chan string
}

// open adds a reader until leave is called. It fails if there are too many.
func (h *hub) open(s *session) (_ *stream, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for other := range h.streams {
		if other.session.is(&s.Person) {
			own++
		}
	}
	if len(h.streams) >= maxStreams || own >= maxStreamsPerPerson {
		return nil, nil, faultStreams
	}
	reader := &stream{session: s, calls: make(chan *callEvent, streamQueue), ended: make(chan string, 1)}
	h.streams[reader] = true
	h.count.Add(1)
	return reader, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.streams, reader)
		h.count.Add(-1)
	}, nil
}

var faultStreams = &fault{code: codeLimited, retry: 60, text: manifest.Text{
	"en": fmt.Sprintf("Too many pages of the console are open: %d by one person, %d in total.", maxStreamsPerPerson,
		maxStreams),
	"ja": fmt.Sprintf("開いているコンソールのページが多すぎます (1 人 %d、全体で %d まで)。", maxStreamsPerPerson, maxStreams),
}, remedy: manifest.Text{"en": "Close some.", "ja": "いくつか閉じてください。"}}

// is reports whether two logins are of one person.
func (p *Person) is(other *Person) bool {
	return p.Name == other.Name && p.via == other.via && p.source == other.source
}

// each calls do with every stream.
func (h *hub) each(do func(*stream)) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		do(s)
	}
}

// call forwards a call to the streams.
func (h *hub) call(e *callEvent) {
	h.each(func(s *stream) {
		select {
		case s.calls <- e:
		default:
			s.dropped.Add(1)
		}
	})
}

// endSession ends the streams of a session that was logged out.
func (h *hub) endSession(id string) {
	h.endWhere(endLogout, func(s *stream) bool { return s.session.id == id })
}

func (h *hub) endWhere(reason string, which func(*stream) bool) {
	h.each(func(s *stream) {
		if !which(s) {
			return
		}
		select {
		case s.ended <- reason:
		default: // it is ending
		}
	})
}
