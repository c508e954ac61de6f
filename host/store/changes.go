package store

import (
	"context"
	"database/sql"
	"sync"
)

// watchers are the channels of Changes.
type watchers struct {
	once sync.Once // starts listening

	mu     sync.Mutex // guards topics
	topics map[string]map[chan struct{}]struct{}
}

// Changes returns a channel that receives a value when the topic may have changed, in this process or another one (see
// Announce), until ctx ends or the store is closed. It also receives a value at the beginning, as soon as no later
// change can be missed, and whenever changes may have been missed, such as after an outage. So a reader that reloads at
// every value ends up with the newest state. Several changes may result in one value, and a value may come without a
// change.
//
// With PostgreSQL the delay is a round trip (LISTEN). With a directory it is at most 200 ms, and each change counts for
// all topics.
func (s *Store) Changes(ctx context.Context, topic string) <-chan struct{} {
	watcher := make(chan struct{}, 1)
	s.watchers.add(topic, watcher)
	context.AfterFunc(ctx, func() { s.watchers.remove(topic, watcher) })
	started := true
	s.watchers.once.Do(func() {
		started = false
		s.working.Go(func() { s.engine.Listen(s.ending, s.watchers.notify) })
	})
	if started {
		notify(watcher) // listening may have started already
	}
	return watcher
}

// Announce notifies the channels of Changes for the topic when tx is committed. It must be called within Update.
func (s *Store) Announce(ctx context.Context, tx *sql.Tx, topic string) error {
	return s.engine.Announce(ctx, tx, topic)
}

func (w *watchers) add(topic string, watcher chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.topics == nil {
		w.topics = map[string]map[chan struct{}]struct{}{}
	}
	if w.topics[topic] == nil {
		w.topics[topic] = map[chan struct{}]struct{}{}
	}
	w.topics[topic][watcher] = struct{}{}
}

func (w *watchers) remove(topic string, watcher chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.topics[topic], watcher)
	if len(w.topics[topic]) == 0 {
		delete(w.topics, topic)
	}
}

// notify sends to the channels of a topic; "" means all topics.
func (w *watchers) notify(topic string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, waiting := range w.topics {
		if topic != "" && topic != name {
			continue
		}
		for watcher := range waiting {
			notify(watcher)
		}
	}
}

// notify sends a value unless one is already waiting.
func notify(watcher chan<- struct{}) {
	select {
	case watcher <- struct{}{}:
	default:
	}
}
