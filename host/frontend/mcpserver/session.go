package mcpserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// sessionTable has the open sessions over HTTP, with their owners and the calls that bypass the SDK. It ends idle
// sessions. The store decides which sessions make room for new ones.
type sessionTable struct {
	// mu guards what follows and the fields of each session that change.
	mu     sync.Mutex
	limits limits.Limits
	byID   map[string]*session
	// byKey finds sessions by their keys in the store.
	byKey map[string]*session
	store SessionStore
}

// session is one session. The table guards the fields that change.
type session struct {
	table *sessionTable
	// id identifies the session at the client, key in the store.
	id, key string
	// conn connects the client to sdk. Both are nil in a session of another replica until a request needs the SDK here.
	conn *transport.Conn
	sdk  *mcp.ServerSession
	// owner is the key of the user who opened it, empty without authentication; toolset names its endpoint, see
	// exchange. identity is that of the request that opened it.
	owner    string
	toolset  string
	identity *auth.Identity
	// clientKey identifies the client against whose limit the session counts.
	clientKey string
	// restoring is held while conn and sdk are restored from the store, or their subscriptions updated from it.
	restoring sync.Mutex
	// client is the client's own name; it may be nil.
	client *mcp.Implementation
	// version is the negotiated protocol version.
	version string
	// capabilities are the client's capabilities; they may be nil.
	capabilities *mcp.ClientCapabilities

	// requests are in flight, streams open. called counts the calls of tools.
	requests, streams int
	called            uint64
	// closing: the session has ended, and its connection is closed after the requests in flight.
	closing  bool
	lastUsed time.Time
	ending   *time.Timer
	// calls are the calls in flight that bypass the SDK.
	calls map[jsonrpc.ID]context.CancelFunc
}

func newSessionTable(limits limits.Limits, store SessionStore) *sessionTable {
	return &sessionTable{limits: limits, byID: map[string]*session{}, byKey: map[string]*session{}, store: store}
}

// set applies other limits to sessions that are used or opened from now on.
func (t *sessionTable) set(limits limits.Limits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limits = limits
}

// add registers a session that was opened with these parameters.
func (t *sessionTable) add(id string, opened *mcp.InitializeParams, x *exchange) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		return s
	}
	s := &session{
		table: t, id: id, key: sessionstore.Key(id), clientKey: clientKey(x),
		owner: x.owner(), toolset: x.toolset, identity: x.identity,
		client: opened.ClientInfo, version: opened.ProtocolVersion, capabilities: opened.Capabilities,
		lastUsed: time.Now(), calls: map[jsonrpc.ID]context.CancelFunc{},
	}
	s.ending = time.AfterFunc(t.limits.SessionIdle, s.expire)
	t.byID[id], t.byKey[s.key] = s, s
	return s
}

// use returns the current use of the session. The caller holds the table's mu.
func (s *session) use() sessionstore.Use {
	switch {
	case s.requests > 0:
		return sessionstore.Serving
	case s.streams > 0:
		return sessionstore.Streaming
	}
	return sessionstore.Idle
}

// use returns the current use of the session with this key here, and the time of the last.
func (t *sessionTable) use(key string) (sessionstore.Use, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byKey[key]; s != nil {
		return s.use(), s.lastUsed
	}
	return sessionstore.Idle, time.Time{}
}

// attach gives a session its connection to the SDK, and reports false if it has ended meanwhile.
func (t *sessionTable) attach(s *session, conn *transport.Conn, sdk *mcp.ServerSession) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[s.id] != s {
		return false
	}
	s.conn, s.sdk = conn, sdk
	return true
}

// connectionOf returns the connection of a session to the SDK, or nil.
func (t *sessionTable) connectionOf(s *session) (*transport.Conn, *mcp.ServerSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.conn, s.sdk
}

// byStoreKey returns the session with this key in the store of all replicas, or nil.
func (t *sessionTable) byStoreKey(key string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey[key]
}

// keys returns the keys of the sessions that were used since then, of those with requests or streams now, and of all.
func (t *sessionTable) keys(since time.Time) (used, held, known []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.byKey {
		known = append(known, key)
		if s.requests > 0 || !s.lastUsed.Before(since) {
			used = append(used, key)
		}
		if s.use() != sessionstore.Idle {
			held = append(held, key)
		}
	}
	return used, held, known
}

// drop forgets a session that has ended, which may be nil. Requests in flight are still answered.
func (t *sessionTable) drop(s *session) {
	if s == nil {
		return
	}
	t.mu.Lock()
	known := t.byID[s.id] == s
	idle := s.requests == 0
	if known {
		t.forget(s)
		s.closing = !idle
	}
	t.mu.Unlock()
	if known && idle {
		go t.close(s)
	}
}

// close closes the connection, if there is one, of a session that has been forgotten. The SDK discards the answers of
// requests that are in flight by then.
func (t *sessionTable) close(s *session) {
	if _, sdk := t.connectionOf(s); sdk != nil {
		_ = sdk.Close() // there is nobody left to notify
	}
}

func (t *sessionTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// of returns the session with this ID, or nil.
func (t *sessionTable) of(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// enter keeps the session from being idle until leave is called.
func (s *session) enter() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.requests++
}

// leave ends what enter began.
func (s *session) leave() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.requests--
	s.lastUsed = time.Now()
	if s.closing && s.requests == 0 {
		go s.table.close(s)
	}
}

// listen marks that the session has an open stream, until the returned function is called.
func (s *session) listen() (end func()) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.streams++
	return func() {
		s.table.mu.Lock()
		defer s.table.mu.Unlock()
		s.streams--
		s.lastUsed = time.Now()
	}
}

// clear forgets all sessions.
func (t *sessionTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.byID {
		t.forget(s)
	}
}

// forget takes a session out of the table. The caller holds mu.
func (t *sessionTable) forget(s *session) {
	s.ending.Stop()
	delete(t.byID, s.id)
	delete(t.byKey, s.key)
}

// expire ends the session if it has been idle for long enough, and otherwise checks again at the earliest time for it.
func (s *session) expire() {
	if s.isExpired() {
		s.table.store.Release(s.key)
		s.table.close(s) // it has no requests to wait for
	}
}

func (s *session) isExpired() bool {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.table.byID[s.id] != s {
		return false // it has been forgotten meanwhile
	}
	rest := s.table.limits.SessionIdle
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

// begin registers a call that bypasses the SDK, and can be cancelled until end is called. It reports false if a request
// with its ID is in flight already.
func (s *session) begin(id jsonrpc.ID, cancel context.CancelFunc) bool {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if _, ok := s.calls[id]; ok || s.conn != nil && s.conn.Expects(id) {
		return false
	}
	s.calls[id] = cancel
	s.called++
	return true
}

func (s *session) end(id jsonrpc.ID) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	delete(s.calls, id)
}

// expect makes the answers of the SDK to requests go to a stream. If a request with one of their IDs is in flight, it
// returns that request and changes nothing. A call that begins meanwhile finds the request, or expect finds the call.
func (s *session) expect(conn *transport.Conn, stream *transport.Stream,
	requests []*jsonrpc.Request) (duplicate *jsonrpc.Request) {
	if duplicate := conn.Expect(stream, requests...); duplicate != nil {
		return duplicate
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	for _, request := range requests {
		if _, ok := s.calls[request.ID]; ok {
			conn.Unexpect(requests...)
			return request
		}
	}
	return nil
}

// cancel cancels the call with this ID, if it bypasses the SDK.
func (s *session) cancel(requestID any) {
	id, err := jsonrpc.MakeID(requestID)
	if err != nil {
		return
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if cancel := s.calls[id]; cancel != nil {
		cancel()
	}
}

// takesBatches reports whether the protocol version of the session, and of the header if there is one, has batches.
func (s *session) takesBatches(h http.Header) bool {
	version := h.Get("Mcp-Protocol-Version")
	return withBatches[s.version] && (version == "" || withBatches[version])
}

var withBatches = map[string]bool{"2024-11-05": true, "2025-03-26": true}
