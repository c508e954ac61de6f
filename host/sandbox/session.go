package sandbox

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
)

// minSessions is the minimum number of sessions of a plugin that are kept.
const minSessions = 64

// sessions holds the instances of a plugin whose state lasts for a session. A nil *sessions does nothing.
type sessions struct {
	maxSessions int

	// mu guards the fields below, and users and since of each session.
	mu     sync.Mutex
	byID   map[sessionID]*session
	expiry *time.Timer
}

// sessionID identifies a session.
type sessionID struct{ tenant, session string }

// session is the state of one session. The call that holds its turn owns instance, which is nil before the first call
// and after a failed one.
type session struct {
	turn     chan struct{}
	instance *instance
	// users counts calls that run or wait; since is when the last one ended.
	users int
	since time.Time
}

// newSessions returns sessions for at least as many sessions as calls may run.
func newSessions(concurrency int) *sessions {
	return &sessions{maxSessions: max(minSessions, concurrency), byID: map[sessionID]*session{}}
}

// acquire waits until no other call of the invocation's session runs. It returns nil without a session and fails like
// gate.Acquire. It must be called before that one: calls that wait here must not occupy slots.
func (s *sessions) acquire(ctx context.Context, spec Spec, invocation *catalog.Invocation) (*session, error) {
	if s == nil || invocation.Session == "" {
		return nil, nil
	}
	const remedy = "calls of one session run one after another: wait for the one before, or raise limits.queue or " +
		"limits.queueWait"
	entered, waiting := s.reference(sessionID{invocation.Tenant, invocation.Session})
	if waiting > spec.Limits.Queue {
		s.unreference(entered)
		return nil, &limit.Error{Plugin: spec.Name, Limit: limit.Queue,
			Value: fmt.Sprintf("%d waiting calls", spec.Limits.Queue), Remedy: remedy}
	}
	timer := time.NewTimer(spec.Limits.QueueWait)
	defer timer.Stop()
	var err error
	select {
	case entered.turn <- struct{}{}:
		return entered, nil
	case <-timer.C:
		err = &limit.Error{Plugin: spec.Name, Limit: limit.Queue,
			Value: spec.Limits.QueueWait.String() + " of waiting", Remedy: remedy}
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.unreference(entered)
	return nil, err
}

// reference returns the session with this id and how many other calls of it run or wait.
func (s *sessions) reference(id sessionID) (found *session, before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found = s.byID[id]; found == nil {
		found = &session{turn: make(chan struct{}, 1)}
		s.byID[id] = found
	}
	found.users++
	return found, found.users - 1
}

// release ends the turn of a call.
func (s *sessions) release(session *session) {
	if session == nil {
		return
	}
	<-session.turn
	s.unreference(session)
}

func (s *sessions) unreference(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.users--
	session.since = time.Now()
	if len(s.byID) > s.maxSessions {
		s.forgetOldest()
	}
	if s.expiry == nil {
		s.expiry = time.AfterFunc(stateTime, s.expire)
	}
}

// forgetOldest removes the least recently used session. s.mu is held.
func (s *sessions) forgetOldest() {
	var oldest *sessionID
	for id, session := range s.byID {
		if session.users == 0 && (oldest == nil || session.since.Before(s.byID[*oldest].since)) {
			oldest = &id
		}
	}
	if oldest != nil {
		s.forget(*oldest)
	}
}

// forget removes a session without users. s.mu is held.
func (s *sessions) forget(id sessionID) {
	session := s.byID[id]
	delete(s.byID, id)
	if session.instance != nil {
		_ = session.instance.close(CloseSession) // no guest code runs, so closing does not fail
	}
}

// expire removes the sessions that have been unused for stateTime.
func (s *sessions) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = nil
	for id, session := range maps.Clone(s.byID) {
		if session.users == 0 && time.Since(session.since) >= stateTime {
			s.forget(id)
		}
	}
	if len(s.byID) > 0 {
		s.expiry = time.AfterFunc(stateTime/2, s.expire)
	}
}

// oldestSince returns since when the least recently used session has been unused.
func (s *sessions) oldestSince() (since time.Time, found bool) {
	if s == nil {
		return since, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.byID {
		if session.users == 0 && (!found || session.since.Before(since)) {
			since, found = session.since, true
		}
	}
	return since, found
}

// closeOldest removes the least recently used session. It reports false if there is none.
func (s *sessions) closeOldest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.byID)
	s.forgetOldest()
	return len(s.byID) < before
}

// any reports whether there are sessions.
func (s *sessions) any() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID) > 0
}

// close removes all sessions. No call may be running.
func (s *sessions) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	for id := range maps.Clone(s.byID) {
		s.forget(id)
	}
}

// takeInstance removes and returns the session's instance, or nil. The caller holds the session's turn.
func (s *session) takeInstance() *instance {
	if s == nil {
		return nil
	}
	i := s.instance
	s.instance = nil
	return i
}
