package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
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
	// stop ends the notifications of changes from the Pipeline.
	stop func()
	work sync.WaitGroup

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

// updater is an optional ability of a Pipeline: it reports which resources its calls change.
type updater interface {
	WatchUpdates(updated func(tenant, uri string)) (stop func())
}

// newSubscriptions starts to watch which resources calls change. close ends that.
func newSubscriptions(s *Server) *subscriptions {
	subs := &subscriptions{server: s, stop: func() {}, sessions: map[*mcp.ServerSession]*subscription{},
		queued: map[string]bool{}, foreign: map[string]bool{}, watches: map[string]*watch{}}
	if p, ok := s.pipeline.(updater); ok {
		subs.stop = p.WatchUpdates(subs.updated)
	}
	return subs
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

// emptyResult is the result of a method that returns nothing.
type emptyResult struct{ mcp.ResultBase }

// accepts reports whether a view has a resource with this URI.
func (s *subscriptions) accepts(view *catalog.View, uri string) bool {
	return len(uri) <= maxURI && (hasResource(view, uri) || s.server.extended[uri])
}

// receive is the middleware for requests about subscriptions.
func (s *subscriptions) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		tenant := ""
		if x := exchangeOf(req.GetExtra()); x != nil {
			tenant = tenantOf(x.identity)
		}
		switch req := req.(type) {
		case *mcp.SubscribeRequest:
			if !s.accepts(s.server.viewFor(req), req.Params.URI) {
				return nil, unknownResource(req.Params.URI)
			}
			if err := s.add(req.Session, notifierOf(req.Extra), topic(tenant, req.Params.URI)); err != nil {
				return nil, err
			}
			return new(emptyResult), nil
		case *mcp.UnsubscribeRequest:
			s.remove(req.Session, topic(tenant, req.Params.URI))
			return new(emptyResult), nil
		case *mcp.SubscriptionsListenRequest:
			if wanted := req.Params.Notifications; wanted != nil {
				view := s.server.viewFor(req)
				wanted.ResourceSubscriptions = s.subscribeTopics(view, tenant, wanted.ResourceSubscriptions)
				defer s.unsubscribeTopics(wanted.ResourceSubscriptions) // next returns when the stream ends
			}
		}
		return next(ctx, method, req)
	}
}

// subscribeTopics subscribes to those URIs that have a resource and returns their topics. The acknowledgement names
// them to the client (MCP 2026-07-28, subscriptions).
func (s *subscriptions) subscribeTopics(view *catalog.View, tenant string, uris []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var topics []string
	for _, uri := range uris[:min(len(uris), maxAsked)] {
		if name := topic(tenant, uri); !s.closed && len(topics) < maxSubscriptions && s.accepts(view, uri) &&
			!slices.Contains(topics, name) {
			topics = append(topics, name)
			s.subscribed(name)
		}
	}
	return topics
}

// unsubscribeTopics ends the subscriptions of subscribeTopics.
func (s *subscriptions) unsubscribeTopics(topics []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsubscribed(topics...)
}

func unknownResource(uri string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such resource to subscribe to",
		Data: uriData(uri)}
}

// add adds a subscription of a session, until the session ends.
func (s *subscriptions) add(session *mcp.ServerSession, client notifier, topic string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.sessions[session]
	if sub != nil && sub.topics[topic] {
		return nil
	}
	if s.closed || sub != nil && len(sub.topics) >= maxSubscriptions {
		return &jsonrpc.Error{Code: codeBusy,
			Message: fmt.Sprintf("at most %d subscriptions are kept for a session: unsubscribe from some",
				maxSubscriptions)}
	}
	if sub == nil {
		sub = &subscription{client, map[string]bool{}}
		s.sessions[session] = sub
		s.work.Go(func() {
			_ = session.Wait() // its error does not matter
			s.forget(session)
		})
	}
	sub.topics[topic] = true
	s.subscribed(topic)
	return nil
}

func (s *subscriptions) remove(session *mcp.ServerSession, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.sessions[session]; sub != nil && sub.topics[topic] {
		delete(sub.topics, topic)
		s.unsubscribed(topic)
	}
}

// set makes the subscriptions of a session those of a list of URIs.
func (s *subscriptions) set(session *mcp.ServerSession, client notifier, tenant string, uris []string) {
	for _, uri := range s.of(session) {
		if !slices.Contains(uris, uri) {
			s.remove(session, topic(tenant, uri))
		}
	}
	for _, uri := range uris {
		if s.accepts(s.server.catalog.View(), uri) {
			_ = s.add(session, client, topic(tenant, uri)) // one too many was refused where it was made
		}
	}
}

// forget removes the subscriptions of a session that has ended.
func (s *subscriptions) forget(session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsubscribed(slices.Collect(maps.Keys(s.sessions[session].topics))...)
	delete(s.sessions, session)
}

// of returns the URIs that a session has subscribed to.
func (s *subscriptions) of(session *mcp.ServerSession) (uris []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.sessions[session]; sub != nil {
		for topic := range sub.topics {
			uris = append(uris, uriOf(topic))
		}
	}
	return uris
}

// clients returns the sessions that have subscribed to a topic.
func (s *subscriptions) clients(topic string) (clients []notifier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.sessions {
		if sub.topics[topic] {
			clients = append(clients, sub.client)
		}
	}
	return clients
}

// notifyReplicas notifies other replicas of changes here, for their clients.
func (s *subscriptions) notifyReplicas(topics []string) {
	var own []string
	s.mu.Lock()
	for _, topic := range topics {
		if !s.foreign[topic] {
			own = append(own, topic)
		}
		delete(s.foreign, topic)
	}
	s.mu.Unlock()
	if len(own) > 0 {
		s.server.replicas.sendUpdates(own)
	}
}

// handleRemoteUpdates handles changes of resources at another replica.
func (s *subscriptions) handleRemoteUpdates(topics []string) {
	for _, topic := range topics {
		s.update(topic, true)
	}
}

// updated handles a change of a resource. It does not wait for the notifications.
func (s *subscriptions) updated(tenant, uri string) { s.update(topic(tenant, uri), false) }

func (s *subscriptions) update(name string, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return
	case s.queued[name]:
		if !foreign {
			delete(s.foreign, name)
		}
		return
	case len(s.pending) >= maxPending:
		if !s.dropping {
			s.dropping = true
			s.server.options.Logger.Warn("notifications about changed resources are dropped: clients read too slowly")
		}
		return
	}
	if foreign {
		s.foreign[name] = true
	}
	s.pending = append(s.pending, name)
	s.queued[name] = true
	if !s.notifying {
		s.notifying = true
		s.work.Go(s.notifyPending)
	}
}

// notifyPending notifies clients of changes until there are no more.
func (s *subscriptions) notifyPending() {
	for {
		s.mu.Lock()
		pending := s.pending
		s.pending, s.dropping = nil, false
		clear(s.queued)
		if len(pending) == 0 || s.closed {
			s.notifying = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		s.notifyReplicas(pending)
		for _, topic := range pending {
			for _, client := range s.clients(topic) {
				// A client that cannot be notified has left, or has no stream open.
				_ = client.Notify(context.Background(), "notifications/resources/updated",
					&mcp.ResourceUpdatedNotificationParams{URI: uriOf(topic)})
			}
			// A client that cannot be notified has disconnected, or is about to.
			_ = s.server.sdk.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: topic})
		}
	}
}

// send is the middleware that replaces topics by URIs in notifications of the SDK.
func (s *subscriptions) send(next mcp.MethodHandler) mcp.MethodHandler {
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
func (s *subscriptions) close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.unwatch()
	s.work.Wait()
}
