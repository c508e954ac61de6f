package mcpclient

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/cause"
)

const (
	// maxWatched bounds the subscriptions at a server: in 2026-07-28 each costs a stream.
	maxWatched = 64
	// subscribeTime bounds one subscription.
	subscribeTime = 10 * time.Second
)

var _ catalog.Subscriber = (*server)(nil)

// watches are the subscriptions of clients, by the server's URIs. The zero value is ready.
type watches struct {
	mu    sync.Mutex
	byURI map[string]map[int]func()
	next  int
}

func (w *watches) add(uri string, updated func()) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byURI == nil {
		w.byURI = map[string]map[int]func(){}
	}
	if w.byURI[uri] == nil {
		w.byURI[uri] = map[int]func(){}
	}
	id := w.next
	w.next++
	w.byURI[uri][id] = updated
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.byURI[uri], id); len(w.byURI[uri]) == 0 {
			delete(w.byURI, uri)
		}
	}
}

// notify calls the subscribers of uri. They hold their own locks.
func (w *watches) notify(uri string) {
	w.mu.Lock()
	list := slices.Collect(maps.Values(w.byURI[uri]))
	w.mu.Unlock()
	for _, updated := range list {
		updated()
	}
}

// uris returns the resources with subscribers.
func (w *watches) uris() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	uris := make(map[string]bool, len(w.byURI))
	for uri := range w.byURI {
		uris[uri] = true
	}
	return uris
}

// Subscribe subscribes to changes of a resource while the server is connected, and again after a reconnection. A server
// without subscriptions sends no changes.
func (s *server) Subscribe(uri string, updated func()) (stop func()) {
	own, ok := s.spec.inside(uri)
	if !ok {
		return func() {}
	}
	remove := s.watches.add(own, updated)
	s.rewatch()
	return func() { remove(); s.rewatch() }
}

// rewatch signals refreshUntilEnd to update the subscriptions.
func (s *server) rewatch() {
	select {
	case s.interest <- struct{}{}:
	default:
	}
}

// subscribe updates the session's subscriptions at the server. It does not repeat one that the server has refused in
// this session.
func (s *server) subscribe(x *session) {
	if c := x.sdk.InitializeResult().Capabilities; c == nil || c.Resources == nil || !c.Resources.Subscribe {
		return
	}
	wanted := s.watches.uris()
	for uri := range x.subscribed {
		if !wanted[uri] {
			delete(x.subscribed, uri)
			s.bounded(x, func(ctx context.Context) error {
				return x.sdk.Unsubscribe(ctx,
					&mcp.UnsubscribeParams{URI: uri})
			})
		}
	}
	for uri := range wanted {
		if !x.subscribed[uri] && len(x.subscribed) < maxWatched {
			x.subscribed[uri] = true
			s.bounded(x, func(ctx context.Context) error {
				return x.sdk.Subscribe(ctx,
					&mcp.SubscribeParams{URI: uri})
			})
		}
	}
}

func (s *server) bounded(x *session, ask func(context.Context) error) {
	ctx, cancel := context.WithTimeout(x.ctx, subscribeTime)
	defer cancel()
	if err := ask(ctx); err != nil && x.ctx.Err() == nil {
		s.logger.Warn("an upstream server does not take a subscription", "err",
			oneLineOf(cause.WithoutURL(err).Error()))
	}
}
