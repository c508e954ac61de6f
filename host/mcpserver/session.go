package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// sessions are the open sessions over HTTP. The SDK has a table of its own, which it does not show; this one knows which sessions
// there are, whose they are, and which of their calls the SDK has not seen. It ends sessions that are idle: to the SDK a session
// looks idle whose calls are answered without it.
type sessions struct {
	// mu guards what follows and the fields of each session that change.
	mu   sync.Mutex
	idle time.Duration
	byID map[string]*session
	// byKey finds those of all replicas by their keys in the store; nil where there is none.
	byKey map[string]*session
	// closing are those whose SDK's session is being closed, by ID, until it is: only then can there be another one of the same ID.
	closing map[string]chan struct{}
}

// session is one session. What changes in it is guarded by the table.
type session struct {
	table *sessions
	// id is the client's, key the one in the store of all replicas.
	id, key string
	// sdk is nil where the session is another replica's and only its plain calls have come here.
	sdk *mcp.ServerSession
	// owner is the key of the user who opened it, empty without authentication. identity and address are of the request that it came with.
	owner    string
	identity *Identity
	address  string
	// reviving is held while the SDK's session is made, or made another. level is that of logging/setLevel.
	reviving sync.Mutex
	level    string
	// client is what the client calls itself; it may be nil.
	client *mcp.Implementation
	// version is the one that its client asked for.
	version string
	// capabilities are its client's; they may be nil.
	capabilities *mcp.ClientCapabilities

	requests int
	lastUsed time.Time
	ending   *time.Timer
	// calls are those in flight that the SDK has not seen.
	calls map[jsonrpc.ID]context.CancelFunc
}

func newSessions(idle time.Duration) *sessions {
	return &sessions{idle: idle, byID: map[string]*session{}, closing: map[string]chan struct{}{}}
}

// set changes when sessions end that are idle, of those in use from now on.
func (t *sessions) set(idle time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = idle
}

// add takes in a session that was opened with these parameters.
func (t *sessions) add(id string, opened *mcp.InitializeParams, over *exchange) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		return s
	}
	s := &session{
		table: t, id: id, owner: over.owner(), identity: over.identity, address: over.address,
		client: opened.ClientInfo, version: opened.ProtocolVersion, capabilities: opened.Capabilities,
		lastUsed: time.Now(), calls: map[jsonrpc.ID]context.CancelFunc{},
	}
	if t.byKey != nil {
		s.key = sessionstore.Key(id)
		t.byKey[s.key] = s
	}
	s.ending = time.AfterFunc(t.idle, s.expire)
	t.byID[id] = s
	return s
}

// attach gives a session the SDK's, and reports false if it has ended meanwhile.
func (t *sessions) attach(s *session, sdk *mcp.ServerSession) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[s.id] != s {
		return false
	}
	s.sdk = sdk
	return true
}

// sdkOf returns the SDK's session, or nil.
func (t *sessions) sdkOf(s *session) *mcp.ServerSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.sdk
}

// byStoreKey returns the session with this key in the store of all replicas, or nil.
func (t *sessions) byStoreKey(key string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey[key]
}

// keys are those of the sessions that have been used since then, and of all.
func (t *sessions) keys(since time.Time) (used, known []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.byKey {
		known = append(known, key)
		if s.requests > 0 || !s.lastUsed.Before(since) {
			used = append(used, key)
		}
	}
	return used, known
}

// drop forgets a session that has ended elsewhere. It may be nil.
func (t *sessions) drop(s *session) {
	if s == nil {
		return
	}
	t.mu.Lock()
	known := t.byID[s.id] == s
	if known {
		t.forget(s)
	}
	t.mu.Unlock()
	if known {
		go t.close(s) // it waits for the requests in flight
	}
}

// close closes the SDK's session, if there is one, of a session that has been forgotten.
func (t *sessions) close(s *session) {
	if s.sdk == nil {
		return
	}
	_ = s.sdk.Close() // there is nobody left to tell
	t.mu.Lock()
	defer t.mu.Unlock()
	if closed := t.closing[s.id]; closed != nil {
		close(closed)
		delete(t.closing, s.id)
	}
}

// closed waits until an earlier session of the SDK's with this ID is closed.
func (t *sessions) closed(ctx context.Context, id string) error {
	t.mu.Lock()
	closing := t.closing[id]
	t.mu.Unlock()
	if closing == nil {
		return nil
	}
	select {
	case <-closing:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// of returns the session with this ID, or nil.
func (t *sessions) of(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// enter keeps the session from being idle until leave is called. A nil session is entered too.
func (s *session) enter() {
	if s == nil {
		return
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.requests++
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
	delete(t.byKey, s.key)
	if s.sdk != nil && t.byKey != nil {
		t.closing[s.id] = make(chan struct{})
	}
}

// expire ends the session if it has been idle for long enough, and otherwise looks again when it may have been.
func (s *session) expire() {
	if s.isExpired() {
		s.table.close(s) // it has no requests to wait for
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
