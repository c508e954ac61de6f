package sandbox

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
)

// minSessions is how many sessions of a plugin are remembered at least.
const minSessions = 64

// sessions hold the instances of a plugin whose state lasts for a session. A nil *sessions has none.
type sessions struct {
	most int

	// mu guards what follows, and users and since of each session.
	mu     sync.Mutex
	byID   map[sessionID]*session
	expiry *time.Timer
}

// sessionID is a session among those of all tenants.
type sessionID struct{ tenant, session string }

// session is one caller's. Whoever has taken its turn owns instance, which is nil before the first call and after a failed one.
type session struct {
	turn     chan struct{}
	instance *instance
	// users counts calls that run or wait, since is when the last one ended.
	users int
	since time.Time
}

// newSessions remembers as many sessions as there are calls at once, or more.
func newSessions(concurrency int) *sessions {
	return &sessions{most: max(minSessions, concurrency), byID: map[sessionID]*session{}}
}

// enter waits until no other call of the invocation's session runs. It returns nil if there is no session, and fails like gate.enter,
// which comes after it: calls that wait here must not hold the slots of other sessions.
func (s *sessions) enter(ctx context.Context, spec Spec, invocation *catalog.Invocation) (*session, error) {
	if s == nil || invocation.Session == "" {
		return nil, nil
	}
	const remedy = "calls of one session run one after another: wait for the one before, or raise limits.queue or limits.queueWait"
	entered, waiting := s.use(sessionID{invocation.Tenant, invocation.Session})
	if waiting > spec.Limits.Queue {
		s.release(entered)
		return nil, &LimitError{spec.Name, LimitQueue, fmt.Sprintf("%d waiting calls", spec.Limits.Queue), remedy}
	}
	timer := time.NewTimer(spec.Limits.QueueWait)
	defer timer.Stop()
	var err error
	select {
	case entered.turn <- struct{}{}:
		return entered, nil
	case <-timer.C:
		err = &LimitError{spec.Name, LimitQueue, spec.Limits.QueueWait.String() + " of waiting", remedy}
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.release(entered)
	return nil, err
}

// use returns the session with this id, and how many calls of it run or wait already.
func (s *sessions) use(id sessionID) (found *session, before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found = s.byID[id]; found == nil {
		found = &session{turn: make(chan struct{}, 1)}
		s.byID[id] = found
	}
	found.users++
	return found, found.users - 1
}

// leave ends a call's turn.
func (s *sessions) leave(left *session) {
	if left == nil {
		return
	}
	<-left.turn
	s.release(left)
}

func (s *sessions) release(left *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left.users--
	left.since = time.Now()
	if len(s.byID) > s.most {
		s.forgetOldest()
	}
	if s.expiry == nil {
		s.expiry = time.AfterFunc(stateTime, s.expire)
	}
}

// forgetOldest forgets the session that has been quiet for longest. s.mu is held.
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

// forget forgets a session without users. s.mu is held.
func (s *sessions) forget(id sessionID) {
	session := s.byID[id]
	delete(s.byID, id)
	if session.instance != nil {
		_ = session.instance.close(CloseSession) // nothing runs in it any more
	}
}

// expire forgets the sessions that have been quiet for long.
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

// oldest says since when the session is quiet that has been so for longest.
func (s *sessions) oldest() (since time.Time, found bool) {
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

// drop forgets the session that has been quiet for longest. It reports false if there is none.
func (s *sessions) drop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.byID)
	s.forgetOldest()
	return len(s.byID) < before
}

// any reports whether a session is remembered.
func (s *sessions) any() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID) > 0
}

// close forgets all sessions. No call may be under way.
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

// take returns the session's instance, for the call whose turn it is, or nil.
func (s *session) take() *instance {
	if s == nil {
		return nil
	}
	i := s.instance
	s.instance = nil
	return i
}
