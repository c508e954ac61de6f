package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpserver/auth"
)

// Bounds of resource subscriptions: of one session (up to MCP 2025-11-25) or one stream (from 2026-07-28), of a URI in
// bytes, and of changes that wait for their notifications.
const (
	maxSubscriptions = 256
	maxAsked         = 4 * maxSubscriptions // the rest of a request is ignored
	maxURI           = 2 << 10
	maxPending       = 4096
)

// subscriptions let clients subscribe to resources and notify them of changes, in all protocol versions.
//
// A topic is a resource of a tenant, so that changes for one tenant notify no other. Sessions (up to
// 2025-11-25) are notified from here. The subscription streams of 2026-07-28 are the SDK's, which gets topics for URIs:
// the middlewares of both directions put topics in and take them out.
type subscriptions struct {
	server *Server
	// stop ends the notifications of changes from the Caller.
	stop func()
	done sync.WaitGroup

	// mu guards what follows.
	mu sync.Mutex
	// sessions are the sessions that have sent resources/subscribe.
	sessions map[*mcp.ServerSession]*subscription
	// pending are topics whose subscribers wait for a notification, in order and each once. dropping: there were too
	// many.
	pending []string
	queued  map[string]bool
	// foreign are the pending topics of which other replicas were notified.
	foreign   map[string]bool
	dropping  bool
	notifying bool
	closed    bool
	// watches are the resources with subscribers, by topic. asked are those of which backends send notifications.
	watches map[string]*watch
	asked   int
}

// updater is an optional ability of a Caller: it reports which resources its calls change.
type updater interface {
	WatchUpdates(updated func(tenant, uri string)) (stop func())
}

// newSubscriptions starts to watch which resources calls change. close ends that.
func newSubscriptions(s *Server) *subscriptions {
	t := &subscriptions{server: s, stop: func() {}, sessions: map[*mcp.ServerSession]*subscription{},
		queued: map[string]bool{}, foreign: map[string]bool{}, watches: map[string]*watch{}}
	if calls, ok := s.calls.(updater); ok {
		t.stop = calls.WatchUpdates(t.updated)
	}
	return t
}

// topic names a tenant's resource: the length of the tenant's name, the name, and the URI.
func topic(tenant, uri string) string { return strconv.Itoa(len(tenant)) + ":" + tenant + uri }

// uriOf returns the URI in a topic.
func uriOf(topic string) string {
	_, uri := cutTopic(topic)
	return uri
}

// tenantIn returns the tenant in a topic.
func tenantIn(topic string) string {
	tenant, _ := cutTopic(topic)
	return tenant
}

func cutTopic(topic string) (tenant, uri string) {
	length, rest, _ := strings.Cut(topic, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return "", "" // it is none of topic's
	}
	return rest[:n], rest[n:]
}

// tenantOf returns the tenant of the sender of a message; identity may be nil.
func tenantOf(identity *auth.Identity) string {
	if identity == nil {
		return ""
	}
	return identity.Tenant
}

// subscription is a session that has subscribed to topics.
type subscription struct {
	client notifier
	topics map[string]bool
}

// done is the empty result.
type done struct{ mcp.ResultBase }

// accepts reports whether a view has a resource with this URI.
func (t *subscriptions) accepts(view *catalog.View, uri string) bool {
	return len(uri) <= maxURI && (hasResource(view, uri) || t.server.extended[uri])
}

// receive is the middleware for requests about subscriptions.
func (t *subscriptions) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		tenant := ""
		if over := exchangeOf(req.GetExtra()); over != nil {
			tenant = tenantOf(over.identity)
		}
		switch req := req.(type) {
		case *mcp.SubscribeRequest:
			if !t.accepts(t.server.viewFor(req), req.Params.URI) {
				return nil, unknownResource(req.Params.URI)
			}
			if err := t.add(req.Session, notifierOf(req.Extra), topic(tenant, req.Params.URI)); err != nil {
				return nil, err
			}
			return new(done), nil
		case *mcp.UnsubscribeRequest:
			t.remove(req.Session, topic(tenant, req.Params.URI))
			return new(done), nil
		case *mcp.SubscriptionsListenRequest:
			if wanted := req.Params.Notifications; wanted != nil {
				view := t.server.viewFor(req)
				wanted.ResourceSubscriptions = t.subscribeTopics(view, tenant, wanted.ResourceSubscriptions)
				defer t.unsubscribeTopics(wanted.ResourceSubscriptions) // next returns when the stream ends
			}
		}
		return next(ctx, method, req)
	}
}

// subscribeTopics subscribes to those URIs that have a resource and returns their topics. The acknowledgement names
// them to the client (MCP 2026-07-28, subscriptions).
func (t *subscriptions) subscribeTopics(view *catalog.View, tenant string, uris []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var topics []string
	for _, uri := range uris[:min(len(uris), maxAsked)] {
		if name := topic(tenant, uri); !t.closed && len(topics) < maxSubscriptions && t.accepts(view, uri) &&
			!slices.Contains(topics, name) {
			topics = append(topics, name)
			t.subscribed(name)
		}
	}
	return topics
}

// unsubscribeTopics ends the subscriptions of subscribeTopics.
func (t *subscriptions) unsubscribeTopics(topics []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsubscribed(topics...)
}

func unknownResource(uri string) error {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such resource to subscribe to",
		Data: data}
}

// add adds a subscription of a session, until the session ends.
func (t *subscriptions) add(session *mcp.ServerSession, client notifier, topic string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[session]
	if s != nil && s.topics[topic] {
		return nil
	}
	if t.closed || s != nil && len(s.topics) >= maxSubscriptions {
		return &jsonrpc.Error{Code: codeBusy,
			Message: fmt.Sprintf("at most %d subscriptions are kept for a session: unsubscribe from some",
				maxSubscriptions)}
	}
	if s == nil {
		s = &subscription{client, map[string]bool{}}
		t.sessions[session] = s
		t.done.Go(func() {
			_ = session.Wait() // its error does not matter
			t.forget(session)
		})
	}
	s.topics[topic] = true
	t.subscribed(topic)
	return nil
}

func (t *subscriptions) remove(session *mcp.ServerSession, topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[session]; s != nil && s.topics[topic] {
		delete(s.topics, topic)
		t.unsubscribed(topic)
	}
}

// set makes the subscriptions of a session those of a list of URIs.
func (t *subscriptions) set(session *mcp.ServerSession, client notifier, tenant string, uris []string) {
	for _, uri := range t.of(session) {
		if !slices.Contains(uris, uri) {
			t.remove(session, topic(tenant, uri))
		}
	}
	for _, uri := range uris {
		if t.accepts(t.server.catalog.View(), uri) {
			_ = t.add(session, client, topic(tenant, uri)) // one too many was refused where it was made
		}
	}
}

// forget removes the subscriptions of a session that has ended.
func (t *subscriptions) forget(session *mcp.ServerSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsubscribed(slices.Collect(maps.Keys(t.sessions[session].topics))...)
	delete(t.sessions, session)
}

// of returns the URIs that a session has subscribed to.
func (t *subscriptions) of(session *mcp.ServerSession) (uris []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[session]; s != nil {
		for topic := range s.topics {
			uris = append(uris, uriOf(topic))
		}
	}
	return uris
}

// clients returns the sessions that have subscribed to a topic.
func (t *subscriptions) clients(topic string) (clients []notifier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if s.topics[topic] {
			clients = append(clients, s.client)
		}
	}
	return clients
}

// notifyReplicas notifies other replicas of changes here, for their clients.
func (t *subscriptions) notifyReplicas(topics []string) {
	var own []string
	t.mu.Lock()
	for _, topic := range topics {
		if !t.foreign[topic] {
			own = append(own, topic)
		}
		delete(t.foreign, topic)
	}
	t.mu.Unlock()
	if len(own) > 0 {
		t.server.replicas.sendUpdates(own)
	}
}

// handleRemoteUpdates handles changes of resources at another replica.
func (t *subscriptions) handleRemoteUpdates(topics []string) {
	for _, topic := range topics {
		t.update(topic, true)
	}
}

// updated handles a change of a resource. It does not wait for the notifications.
func (t *subscriptions) updated(tenant, uri string) { t.update(topic(tenant, uri), false) }

func (t *subscriptions) update(name string, foreign bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case t.queued[name]:
		if !foreign {
			delete(t.foreign, name)
		}
		return
	case len(t.pending) >= maxPending:
		if !t.dropping {
			t.dropping = true
			t.server.options.Logger.Warn("notifications about changed resources are dropped: clients read too slowly")
		}
		return
	}
	if foreign {
		t.foreign[name] = true
	}
	t.pending = append(t.pending, name)
	t.queued[name] = true
	if !t.notifying {
		t.notifying = true
		t.done.Go(t.notifyPending)
	}
}

// notifyPending notifies clients of changes until there are no more.
func (t *subscriptions) notifyPending() {
	for {
		t.mu.Lock()
		pending := t.pending
		t.pending, t.dropping = nil, false
		clear(t.queued)
		if len(pending) == 0 || t.closed {
			t.notifying = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.notifyReplicas(pending)
		for _, topic := range pending {
			for _, client := range t.clients(topic) {
				// A client that cannot be notified has left, or has no stream open.
				_ = client.Notify(context.Background(), "notifications/resources/updated",
					&mcp.ResourceUpdatedNotificationParams{URI: uriOf(topic)})
			}
			// A client that cannot be notified has disconnected, or is about to.
			_ = t.server.sdk.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: topic})
		}
	}
}

// send is the middleware that replaces topics by URIs in notifications of the SDK.
func (t *subscriptions) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, _ := req.GetSession().(*mcp.ServerSession)
		switch params := req.GetParams().(type) {
		case *mcp.ResourceUpdatedNotificationParams:
			sent := *params // sessions share one
			sent.URI = uriOf(params.URI)
			req = &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{Session: session, Params: &sent}
		case *mcp.SubscriptionsAcknowledgedParams:
			sent := *params
			sent.Notifications.ResourceSubscriptions = nil
			for _, topic := range params.Notifications.ResourceSubscriptions {
				sent.Notifications.ResourceSubscriptions = append(sent.Notifications.ResourceSubscriptions,
					uriOf(topic))
			}
			req = &mcp.ServerRequest[*mcp.SubscriptionsAcknowledgedParams]{Session: session, Params: &sent}
		}
		return next(ctx, method, req)
	}
}

// close ends the handling of changes. It waits for running notifications, and for the end of sessions with
// subscriptions, which must be closed before.
func (t *subscriptions) close() {
	t.stop()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.unwatch()
	t.done.Wait()
}
