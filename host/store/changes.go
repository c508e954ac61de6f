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
		s.working.Go(func() { s.listen(s.ending, s.watchers.ring) })
	})
	if started {
		ring(watcher) // listening may have started already
	}
	return watcher
}

// Announce notifies the channels of Changes for the topic when tx is committed. It must be called within Update.
func (s *Store) Announce(ctx context.Context, tx *sql.Tx, topic string) error {
	return s.announce(ctx, tx, topic)
}

func (b *watchers) add(topic string, watcher chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = map[string]map[chan struct{}]struct{}{}
	}
	if b.topics[topic] == nil {
		b.topics[topic] = map[chan struct{}]struct{}{}
	}
	b.topics[topic][watcher] = struct{}{}
}

func (b *watchers) remove(topic string, watcher chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.topics[topic], watcher)
	if len(b.topics[topic]) == 0 {
		delete(b.topics, topic)
	}
}

// ring notifies the channels of a topic; "" means all topics.
func (b *watchers) ring(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, waiting := range b.topics {
		if topic != "" && topic != name {
			continue
		}
		for watcher := range waiting {
			ring(watcher)
		}
	}
}

// ring sends a value unless one is already waiting.
func ring(watcher chan<- struct{}) {
	select {
	case watcher <- struct{}{}:
	default:
	}
}
