package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// Sessions of all replicas: the state of a session is in the store. A replica that gets a request of a session for the
// first time reads the state and answers calls with it. For everything else it restores the session: it connects the
// SDK with that state. Both are kept until the session has been idle for long. Other replicas learn
// of the end of a session and of other subscriptions by mail.

// replicas connects the sessions here with those of other replicas, through the store.
type replicas struct {
	server *Server
	store  SessionStore
	// shared is store if there can be other replicas, or nil.
	shared sharedStore
	// forwarded are the requests of other replicas that this one serves.
	forwarded forwardedRequests

	ctx  context.Context // ends with the Server
	stop context.CancelFunc
	work sync.WaitGroup
}

func newReplicas(s *Server, store SessionStore) *replicas {
	rs := &replicas{server: s, store: store}
	rs.shared, _ = store.(sharedStore)
	rs.ctx, rs.stop = context.WithCancel(context.Background())
	return rs
}

// start receives mail of other replicas, if there can be any, until close.
func (rs *replicas) start() {
	if rs.shared == nil {
		return
	}
	rs.work.Go(func() {
		rs.shared.Receive(rs.ctx, rs.receive, func(err error) {
			rs.server.options.Logger.Warn("sessions of other replicas cannot be followed", "err", err)
		})
	})
	rs.work.Go(rs.refreshUse)
}

func (rs *replicas) close() {
	rs.stop()
	rs.work.Wait()
}

// own returns the ID of this replica, or empty if it is alone.
func (rs *replicas) own() string {
	if rs.shared == nil {
		return ""
	}
	return rs.shared.Replica()
}

// lookupTime bounds the lookups in the store for one request.
const lookupTime = 5 * time.Second

// find returns a session from the store, or nil if there is none or it belongs to another user.
func (rs *replicas) find(ctx context.Context, id string, x *exchange) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := rs.store.Find(ctx, sessionstore.Key(id))
	if errors.Is(err, sessionstore.ErrNone) || err == nil && found.Owner != sessionstore.Key(x.sessionOwner()) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	opened := new(mcp.InitializeParams)
	if err := json.Unmarshal(found.Opening, opened); err != nil {
		return nil, err
	}
	return rs.server.sessions.add(id, opened, x), nil
}

// add keeps a session that has been initialized here, and ends others if there are too many.
func (rs *replicas) add(ctx context.Context, sdk *mcp.ServerSession, x *exchange) error {
	opening, err := json.Marshal(sdk.InitializeParams())
	if err != nil {
		return err
	}
	opener, err := json.Marshal(openerOf(x))
	if err != nil {
		return err
	}
	limits := rs.server.now().Limits
	ended, err := rs.store.Add(ctx, &sessionstore.Session{
		Key: sessionstore.Key(sdk.ID()), Owner: sessionstore.Key(x.sessionOwner()),
		Client: sessionstore.Key(clientKey(x)), Opening: opening, Opener: opener,
	}, &sessionstore.Limits{Sessions: limits.Sessions, PerClient: limits.SessionsPerClient,
		Use: rs.server.sessions.use})
	for _, key := range ended {
		rs.server.sessions.drop(rs.server.sessions.byStoreKey(key))
	}
	return err
}

// restore connects the SDK to a session that has no connection at this replica, with the state that is in the store.
func (rs *replicas) restore(ctx context.Context, session *session) error {
	session.restoring.Lock()
	defer session.restoring.Unlock()
	if conn, _ := rs.server.sessions.connectionOf(session); conn != nil {
		return nil
	}
	found, err := rs.store.Find(ctx, session.key)
	if err != nil {
		return err
	}
	opened := new(mcp.InitializeParams)
	if err := json.Unmarshal(found.Opening, opened); err != nil {
		return err
	}
	conn := transport.NewConn(session.id, rs.own())
	state := &mcp.ServerSessionState{
		InitializeParams: opened, InitializedParams: new(mcp.InitializedParams),
		NegotiatedProtocolVersion: opened.ProtocolVersion,
		//lint:ignore SA1019 deprecated in 2026-07-28, and still there for clients of its time
		LogLevel: mcp.LoggingLevel(found.Level),
	}
	sdk, err := rs.server.sdk.Connect(context.Background(), conn, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return err
	}
	if !rs.server.sessions.attach(session, conn, sdk) {
		_ = sdk.Close() // the session has ended meanwhile
		return sessionstore.ErrNone
	}
	rs.server.subscriptions.set(sdk, conn, tenantOf(session.identity), found.Subscriptions)
	return nil
}

// changed takes over the subscriptions that a session has made at another replica.
func (rs *replicas) changed(session *session) {
	session.restoring.Lock()
	defer session.restoring.Unlock()
	conn, sdk := rs.server.sessions.connectionOf(session)
	if sdk == nil {
		return // restore reads them from the store later
	}
	if found, err := rs.store.Find(rs.ctx, session.key); err == nil {
		rs.server.subscriptions.set(sdk, conn, tenantOf(session.identity), found.Subscriptions)
	}
}

// keepsEvents reports whether the store keeps the events of streams.
func (rs *replicas) keepsEvents() bool { return rs.shared != nil }

// end ends a session everywhere.
func (rs *replicas) end(w http.ResponseWriter, r *http.Request, session *session) {
	if _, err := rs.store.Remove(r.Context(), session.key); err != nil {
		rs.unreachable(w, err)
		return
	}
	rs.server.sessions.drop(session)
	w.WriteHeader(http.StatusNoContent)
}

// unreachable answers a request whose session cannot be looked up at the moment.
func (rs *replicas) unreachable(w http.ResponseWriter, err error) {
	rs.server.options.Logger.Warn("a session cannot be looked up", "err", err)
	rs.server.refuse(w, refusedBusy, &limits.BusyError{
		Reason: "sessions cannot be looked up at the moment; try again later", Retry: time.Second, Everyone: true})
}

// note stores the changes that a successful request has made to its session.
func (rs *replicas) note(ctx context.Context, req mcp.Request) error {
	key := func(s *mcp.ServerSession) string { return sessionstore.Key(s.ID()) }
	switch req := req.(type) {
	//lint:ignore SA1019 deprecated in 2026-07-28, and still there for clients of its time
	case *mcp.ServerRequest[*mcp.SetLoggingLevelParams]:
		return rs.store.SetLevel(ctx, key(req.Session), string(req.Params.Level))
	case *mcp.SubscribeRequest:
		return rs.store.Subscribe(ctx, key(req.Session), req.Params.URI)
	case *mcp.UnsubscribeRequest:
		return rs.store.Unsubscribe(ctx, key(req.Session), req.Params.URI)
	}
	return nil
}

// refreshUse records in the store which sessions are in use, and ends sessions here that have ended elsewhere, in case
// mail was lost.
func (rs *replicas) refreshUse() {
	ticker := time.NewTicker(min(sessionstore.Held/3, rs.server.options.Limits.SessionIdle/4))
	defer ticker.Stop()
	since := time.Now()
	for {
		select {
		case <-rs.ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		used, held, known := rs.server.sessions.keys(since)
		ended, err := rs.shared.Touch(rs.ctx, used, held, known)
		if err != nil {
			continue // the next round will show
		}
		since = now
		for _, key := range ended {
			rs.server.sessions.drop(rs.server.sessions.byStoreKey(key))
		}
	}
}
