package store

import (
	"context"
	"database/sql"
	"sync"
)

// bells are what waits for changes.
type bells struct {
	once sync.Once // starts the listener

	mu     sync.Mutex // guards topics
	topics map[string]map[chan struct{}]struct{}
}

// Changes returns a channel that receives when something of that topic may have changed, in this process or another one (see Announce),
// until ctx ends or the store is closed. It also receives once at the beginning, when it is certain that no later change is missed, and
// whenever some may have been missed, such as after an outage. So who reads anew at every value has the newest state in the end. Several
// changes may come as one value, and one may come without a change.
//
// Over PostgreSQL the delay is a round trip (LISTEN); in a directory 200 ms at most, and there any change is one of every topic.
func (s *Store) Changes(ctx context.Context, topic string) <-chan struct{} {
	bell := make(chan struct{}, 1)
	s.bells.add(topic, bell)
	context.AfterFunc(ctx, func() { s.bells.remove(topic, bell) })
	started := true
	s.bells.once.Do(func() {
		started = false
		s.working.Go(func() { s.listen(s.ending, s.bells.ring) })
	})
	if started {
		ring(bell) // the listener may stand already
	}
	return bell
}

// Announce tells those who wait with Changes for the topic, if tx is committed. It is called within Update.
func (s *Store) Announce(ctx context.Context, tx *sql.Tx, topic string) error {
	return s.announce(ctx, tx, topic)
}

func (b *bells) add(topic string, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = map[string]map[chan struct{}]struct{}{}
	}
	if b.topics[topic] == nil {
		b.topics[topic] = map[chan struct{}]struct{}{}
	}
	b.topics[topic][bell] = struct{}{}
}

func (b *bells) remove(topic string, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.topics[topic], bell)
	if len(b.topics[topic]) == 0 {
		delete(b.topics, topic)
	}
}

// ring wakes those who wait for a topic; "" is all of them.
func (b *bells) ring(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, waiting := range b.topics {
		if topic != "" && topic != name {
			continue
		}
		for bell := range waiting {
			ring(bell)
		}
	}
}

// ring makes a bell ring, unless whoever has it has not taken the last time yet.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
