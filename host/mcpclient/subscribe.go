package mcpclient

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
)

const (
	// maxWatched is how many resources of a server are subscribed to: in 2026-07-28 each costs a stream.
	maxWatched = 64
	// subscribeTime bounds one subscription.
	subscribeTime = 10 * time.Second
)

var _ catalog.Subscriber = (*server)(nil)

// watches are those who want to know of changes, by the server's own URIs. The zero value is ready.
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

// tell tells those who watch uri. They hold locks of their own.
func (w *watches) tell(uri string) {
	w.mu.Lock()
	list := slices.Collect(maps.Values(w.byURI[uri]))
	w.mu.Unlock()
	for _, updated := range list {
		updated()
	}
}

// uris are those that somebody watches.
func (w *watches) uris() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	uris := make(map[string]bool, len(w.byURI))
	for uri := range w.byURI {
		uris[uri] = true
	}
	return uris
}

// Subscribe has the server tell of changes of a resource, as long as it is connected and once it is again. One that
// cannot does not.
func (s *server) Subscribe(uri string, updated func()) (stop func()) {
	own, ok := strings.CutPrefix(uri, s.spec.scheme())
	if !ok {
		return func() {}
	}
	remove := s.watches.add(own, updated)
	s.rewatch()
	return func() { remove(); s.rewatch() }
}

// rewatch has attend bring the subscriptions up to date.
func (s *server) rewatch() {
	select {
	case s.interest <- struct{}{}:
	default:
	}
}

// subscribe makes the session's subscriptions those that somebody wants. What a server refuses is not asked for again
// in the session.
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
		s.logger.Warn("an upstream server does not take a subscription", "err", oneLineOf(reason(err).Error()))
	}
}
