package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions are the open sessions over HTTP. The SDK has a table of its own, which it does not show; this one knows which sessions
// there are, whose they are, and which of their calls the SDK has not seen. It ends sessions that are idle: to the SDK a session
// looks idle whose calls are answered without it.
type sessions struct {
	idle time.Duration

	// mu guards what follows and the fields of each session that change.
	mu   sync.Mutex
	byID map[string]*session
}

// session is one session. What changes in it is guarded by the table.
type session struct {
	table *sessions
	id    string
	sdk   *mcp.ServerSession
	// owner is the key of the user who opened it, empty without authentication.
	owner string
	// client is what the client calls itself; it may be nil.
	client *mcp.Implementation
	// version is the one that its client asked for.
	version string
	// fillsForms says that its client shows forms to its user.
	fillsForms bool

	requests int
	lastUsed time.Time
	ending   *time.Timer
	// calls are those in flight that the SDK has not seen.
	calls map[jsonrpc.ID]context.CancelFunc
}

func newSessions(idle time.Duration) *sessions {
	return &sessions{idle: idle, byID: map[string]*session{}}
}

// add takes in a session that has been initialized.
func (t *sessions) add(sdk *mcp.ServerSession, owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	opened := sdk.InitializeParams()
	s := &session{
		table: t, id: sdk.ID(), sdk: sdk, owner: owner, client: opened.ClientInfo, version: opened.ProtocolVersion, fillsForms: fillsForms(opened.Capabilities),
		lastUsed: time.Now(), calls: map[jsonrpc.ID]context.CancelFunc{},
	}
	s.ending = time.AfterFunc(t.idle, s.expire)
	t.byID[s.id] = s
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// enter returns the session that a request belongs to, which then is not idle until leave is called. It is nil if there is none, or
// if it is somebody else's: the SDK has the answers to that.
func (t *sessions) enter(id, owner string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.owner != owner {
		return nil
	}
	s.requests++
	return s
}

// leave ends what enter began. A nil session is left too.
func (s *session) leave() {
	if s == nil {
		return
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.requests--
	s.lastUsed = time.Now()
}

// remove forgets a session that its owner ends.
func (t *sessions) remove(id, owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil && s.owner == owner {
		t.forget(s)
	}
}

// clear forgets all sessions.
func (t *sessions) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.byID {
		t.forget(s)
	}
}

// forget takes a session out of the table. The caller holds mu.
func (t *sessions) forget(s *session) {
	s.ending.Stop()
	delete(t.byID, s.id)
}

// expire ends the session if it has been idle for long enough, and otherwise looks again when it may have been.
func (s *session) expire() {
	if s.isExpired() {
		_ = s.sdk.Close() // it has no requests to wait for, and nobody left to tell
	}
}

func (s *session) isExpired() bool {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.table.byID[s.id] != s {
		return false // it has been forgotten meanwhile
	}
	rest := s.table.idle
	if s.requests == 0 {
		rest -= time.Since(s.lastUsed)
	}
	if rest > 0 {
		s.ending.Reset(rest)
		return false
	}
	s.table.forget(s)
	return true
}

// begin notes a call that can be cancelled until end is called. It reports false if one with the same ID is in flight.
func (s *session) begin(id jsonrpc.ID, cancel context.CancelFunc) bool {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if _, ok := s.calls[id]; ok {
		return false
	}
	s.calls[id] = cancel
	return true
}

func (s *session) end(id jsonrpc.ID) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	delete(s.calls, id)
}

// cancel ends the call with this ID, if it is one that the SDK has not seen. The SDK ends the others.
func (t *sessions) cancel(session string, requestID any) {
	id, err := jsonrpc.MakeID(requestID)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[session]; s != nil && s.calls[id] != nil {
		s.calls[id]()
	}
}
