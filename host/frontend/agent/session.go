package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Reasons for no longer following a session.
var (
	errEnded     = errors.New("the session has ended")
	errRests     = errors.New("nothing happens in the session")
	errForbidden = errors.New("the key may not use the session")
	errRetired   = errors.New("another process follows the session")
	errFlooded   = errors.New("the session has more open calls, or more calls and threads in all, than hako keeps")
)

// session is a followed session. One goroutine handles its events.
type session struct {
	runner *Runner
	id     string
	named  bool
	logger *slog.Logger
	stamp  string        // guarded by Runner.mu: as it was found last
	tools  *sessionTools // guarded by Runner.mu: nil if it was not read yet
	look   chan struct{} // asks for a look at the list, with room for one

	// Used only by the goroutine that follows the session.
	newest      time.Time            // of the events
	listed      bool                 // all events were listed once
	interrupted map[string]time.Time // until when calls were interrupted, by thread; "" is all
	threads     map[string]bool      // those that have ended
	idle        bool                 // the agent waits for its user
	// when something happened last, by the clock that is behind: the API's or this machine's
	busy    time.Time
	ended   bool
	flooded bool // there is more than is kept

	mu      sync.Mutex
	settled map[string]bool  // guarded by mu: calls that need nothing more
	calls   map[string]*call // guarded by mu: those under way
	waiting []*pending       // guarded by mu: those that are not, in their order
	wanted  []string         // guarded by mu: those that the session last said to wait for
}

// pending is a call that has not begun.
type pending struct {
	event *event
	since time.Time
	// after is the time from which it may be tried.
	after time.Time
}

// Bounds of what is kept of a session: its calls that wait to be made with the bytes of their arguments, and all calls
// and threads that were ever seen.
const (
	maxWaiting      = 1000
	maxWaitingBytes = 32 << 20
	maxKnown        = 100_000
)

func newSession(r *Runner, id string, named bool) *session {
	return &session{
		runner: r, id: id, named: named, logger: r.logger.With("session", id), look: make(chan struct{}, 1),
		interrupted: map[string]time.Time{}, threads: map[string]bool{}, busy: time.Now(), settled: map[string]bool{},
		calls: map[string]*call{},
	}
}

// end gives up the open calls of an ended session.
func (s *session) end() {
	s.logger.Info("a session has ended")
	s.mu.Lock()
	for _, c := range s.calls {
		c.cancel(errEnded)
	}
	s.waiting = nil
	s.mu.Unlock()
	if err := s.runner.journal.drop(context.WithoutCancel(s.runner.calling), s.id); err != nil {
		s.logger.Error("the calls of an ended session could not be removed from the journal", "err", err)
	}
}

// handle processes an event, which may have been processed before.
func (s *session) handle(e *event) {
	if e.ProcessedAt != nil && e.ProcessedAt.After(s.newest) {
		s.newest = earlier(*e.ProcessedAt, time.Now()) // an event from the future must not hide those before it
		s.busy = s.newest
	}
	switch e.Type {
	case typeCall:
		s.called(e)
	case typeResult:
		s.answered(e.Call)
	case typeInterrupt:
		if e.ProcessedAt != nil && e.ProcessedAt.After(s.interrupted[e.Thread]) {
			s.interrupted[e.Thread] = *e.ProcessedAt
			s.interrupt()
		}
	case typeThreadTerminated:
		if e.Thread != "" && !s.threads[e.Thread] {
			s.threads[e.Thread] = true
			s.interrupt()
		}
	case typeRunning:
		s.idle = false
	case typeIdle:
		s.idle = e.Stop.Type != "requires_action"
		s.mu.Lock()
		s.wanted = e.Stop.Events
		s.mu.Unlock()
	case typeTerminated, typeDeleted:
		s.ended = true
	}
	if len(s.interrupted)+len(s.threads) > maxKnown {
		s.flooded = true
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// called adds a call unless it is known.
func (s *session) called(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := func(p *pending) bool { return p.event.ID == e.ID }
	if s.settled[e.ID] || s.calls[e.ID] != nil || slices.ContainsFunc(s.waiting, known) {
		return
	}
	size := len(e.Input)
	for _, p := range s.waiting {
		size += len(p.event.Input)
	}
	if len(s.waiting) >= maxWaiting || size > maxWaitingBytes {
		s.flooded = true
		return
	}
	s.waiting = append(s.waiting, &pending{event: e, since: time.Now()})
}

// answered records that a call has its result, from hako or from another program.
func (s *session) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled[id] = true
	s.flooded = s.flooded || len(s.settled) > maxKnown
	s.waiting = slices.DeleteFunc(s.waiting, func(p *pending) bool { return p.event.ID == id })
	if c := s.calls[id]; c != nil {
		c.cancel(errAnswered)
	}
}

// interrupt ends interrupted calls, for which the API accepts no results.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if s.stopped(c.event) {
			c.cancel(errInterrupted)
		}
	}
}

// wants reports whether the session waits for the call's result.
func (s *session) wants(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.wanted, id)
}

// stopped reports whether a call was interrupted or its thread has ended.
func (s *session) stopped(e *event) bool {
	until := s.interrupted[""]
	if own := s.interrupted[e.Thread]; own.After(until) {
		until = own
	}
	return s.threads[e.Thread] || e.ProcessedAt != nil && !e.ProcessedAt.After(until)
}

// start begins waiting calls while there is room.
func (s *session) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.waiting = slices.DeleteFunc(s.waiting, func(p *pending) bool {
		switch {
		case s.stopped(p.event):
			s.settled[p.event.ID] = true
			s.runner.options.Observer.AgentCall(ResultDropped, now.Sub(p.since))
			return true
		case now.Before(p.after):
			return false
		}
		c := s.runner.begin(s, p)
		if c != nil {
			s.calls[p.event.ID] = c
		}
		return c != nil
	})
}

// finished removes an ended call. A call that is not settled waits for another attempt.
func (s *session) finished(c *call, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.event.ID)
	if settled {
		s.settled[c.event.ID] = true
		return
	}
	s.waiting = append(s.waiting, &pending{c.event, c.since, time.Now().Add(s.runner.timing.later)})
}

// stopReason returns why the session should no longer be followed, or nil.
func (s *session) stopReason() error {
	switch {
	case s.flooded:
		return errFlooded
	case s.rests():
		return errRests
	case s.runner.retired() && !s.hasCalls():
		return errRetired
	}
	return nil
}

func (s *session) hasCalls() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

// rests reports whether the session is idle, so that it need not be followed until it changes.
func (s *session) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.named && s.idle && len(s.calls)+len(s.waiting) == 0 && time.Since(s.busy) > s.runner.timing.rest
}

// recheck requests a listing of the events.
func (s *session) recheck() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}
