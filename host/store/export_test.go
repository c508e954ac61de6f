package store

import "time"

// MaxReplicas is the most replicas in a list.
const MaxReplicas = maxReplicas

// SetClock replaces the last reading of the server's clock.
func SetClock(s *Store, server, local time.Time) {
	s.clock.set.Store(&clockReading{server: server, local: local})
}

// Notify notifies the channels of a topic; "" means all topics.
func Notify(s *Store, topic string) { s.watchers.notify(topic) }

// Topics returns the number of topics with channels.
func Topics(s *Store) int {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return len(s.watchers.topics)
}
