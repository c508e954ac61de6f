package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/limits"
	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// Sessions of all replicas: the state of a session is in the store. A replica that gets a request of a session for the
// first time reads the state and answers calls with it. For everything else it restores the session: it connects the
// SDK with that state. Both are kept until the session has been idle for long. Other replicas learn
// of the end of a session and of other subscriptions by mail.

// replicas connects the sessions here with those of other replicas, through the store.
type replicas struct {
	server *Server
	store  sessionstore.Store
	// forwarded are the requests of other replicas that this one serves.
	forwarded forwardedRequests

	ctx  context.Context // ends with the Server
	stop context.CancelFunc
	work sync.WaitGroup
}

func newReplicas(s *Server, store sessionstore.Store) *replicas {
	h := &replicas{server: s, store: store}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// start receives mail of other replicas, if there can be any, until close.
func (h *replicas) start() {
	if h.store.Replica() == "" {
		return
	}
	h.work.Go(func() {
		h.store.Receive(h.ctx, h.receive, func(err error) {
			h.server.options.Logger.Warn("sessions of other replicas cannot be followed", "err", err)
		})
	})
	h.work.Go(h.refreshUse)
}

func (h *replicas) close() {
	h.stop()
	h.work.Wait()
}

// lookupTime bounds the lookups in the store for one request.
const lookupTime = 5 * time.Second

// find returns a session from the store, or nil if there is none or it belongs to another user.
func (h *replicas) find(ctx context.Context, id string, over *exchange) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := h.store.Find(ctx, sessionstore.Key(id))
	if errors.Is(err, sessionstore.ErrNone) || err == nil && found.Owner != sessionstore.Key(over.sessionOwner()) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	opened := new(mcp.InitializeParams)
	if err := json.Unmarshal(found.Opening, opened); err != nil {
		return nil, err
	}
	return h.server.sessions.add(id, opened, over), nil
}

// add keeps a session that has been initialized here, and ends others if there are too many.
func (h *replicas) add(ctx context.Context, sdk *mcp.ServerSession, over *exchange) error {
	opening, err := json.Marshal(sdk.InitializeParams())
	if err != nil {
		return err
	}
	opener, err := json.Marshal(openerOf(over))
	if err != nil {
		return err
	}
	limits := h.server.now().Limits
	ended, err := h.store.Add(ctx, &sessionstore.Session{
		Key: sessionstore.Key(sdk.ID()), Owner: sessionstore.Key(over.sessionOwner()),
		Client: sessionstore.Key(clientKey(over)), Opening: opening, Opener: opener,
	}, &sessionstore.Limits{Sessions: limits.Sessions, PerClient: limits.SessionsPerClient,
		Use: h.server.sessions.use})
	for _, key := range ended {
		h.server.sessions.drop(h.server.sessions.byStoreKey(key))
	}
	return err
}

// keepsEvents reports whether the store keeps the events of streams.
func (h *replicas) keepsEvents() bool { return h.store.Replica() != "" }

// end ends a session everywhere.
func (h *replicas) end(w http.ResponseWriter, r *http.Request, session *session) {
	if _, err := h.store.Remove(r.Context(), session.key); err != nil {
		h.unreachable(w, err)
		return
	}
	h.server.sessions.drop(session)
	w.WriteHeader(http.StatusNoContent)
}

// unreachable answers a request whose session cannot be looked up at the moment.
func (h *replicas) unreachable(w http.ResponseWriter, err error) {
	h.server.options.Logger.Warn("a session cannot be looked up", "err", err)
	h.server.refuse(w, refusedBusy, &limits.BusyError{
		Reason: "sessions cannot be looked up at the moment; try again later", Retry: time.Second, Everyone: true})
}

// note stores the changes that a successful request has made to its session.
func (h *replicas) note(ctx context.Context, req mcp.Request) error {
	key := func(s *mcp.ServerSession) string { return sessionstore.Key(s.ID()) }
	switch req := req.(type) {
	//lint:ignore SA1019 deprecated in 2026-07-28, and still there for clients of its time
	case *mcp.ServerRequest[*mcp.SetLoggingLevelParams]:
		return h.store.SetLevel(ctx, key(req.Session), string(req.Params.Level))
	case *mcp.SubscribeRequest:
		return h.store.Subscribe(ctx, key(req.Session), req.Params.URI)
	case *mcp.UnsubscribeRequest:
		return h.store.Unsubscribe(ctx, key(req.Session), req.Params.URI)
	}
	return nil
}

// refreshUse records in the store which sessions are in use, and ends sessions here that have ended elsewhere, in case
// mail was lost.
func (h *replicas) refreshUse() {
	ticker := time.NewTicker(min(sessionstore.Held/3, h.server.options.Limits.SessionIdle/4))
	defer ticker.Stop()
	since := time.Now()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		used, held, known := h.server.sessions.keys(since)
		ended, err := h.store.Touch(h.ctx, used, held, known)
		if err != nil {
			continue // the next round will show
		}
		since = now
		for _, key := range ended {
			h.server.sessions.drop(h.server.sessions.byStoreKey(key))
		}
	}
}
