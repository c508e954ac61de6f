package sessionstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Memory keeps the sessions of a server that is alone, for as long as the process runs.
type Memory struct {
	// mu guards what follows.
	mu       sync.Mutex
	sessions map[string]*Session
	opened   map[string]time.Time
	// clients counts the sessions of each client.
	clients map[string]int
}

// NewMemory returns a Memory without sessions.
func NewMemory() *Memory {
	return &Memory{sessions: map[string]*Session{}, opened: map[string]time.Time{}, clients: map[string]int{}}
}

// Add keeps a new session. Beyond the limits it ends others and returns their keys, as SQL.Add does.
func (m *Memory) Add(_ context.Context, session *Session, limits *Limits) (ended []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[session.Key], m.opened[session.Key] = session, time.Now()
	m.clients[session.Client]++
	for {
		var worst *Session
		switch {
		case m.clients[session.Client] > limits.PerClient:
			worst = m.leastUsed(limits, func(s *Session) bool { return s != session && s.Client == session.Client })
		case len(m.sessions) > limits.Sessions:
			most := 0
			for _, n := range m.clients {
				most = max(most, n)
			}
			worst = m.leastUsed(limits, func(s *Session) bool { return s != session && m.clients[s.Client] == most })
		}
		if worst == nil {
			return ended, nil
		}
		m.remove(worst.Key)
		ended = append(ended, worst.Key)
	}
}

// leastUsed returns the session that is better ended than the others. The caller holds mu.
func (m *Memory) leastUsed(limits *Limits, among func(*Session) bool) (least *Session) {
	var leastUse Use
	var leastLast int64
	for _, s := range m.sessions {
		if !among(s) {
			continue
		}
		use, last := limits.Use(s.Key)
		if least == nil || use < leastUse || use == leastUse && last.UnixNano() < leastLast {
			least, leastUse, leastLast = s, use, last.UnixNano()
		}
	}
	return least
}

// remove forgets a session, and reports whether there was one. The caller holds mu.
func (m *Memory) remove(key string) bool {
	s := m.sessions[key]
	if s == nil {
		return false
	}
	delete(m.sessions, key)
	delete(m.opened, key)
	if m.clients[s.Client]--; m.clients[s.Client] == 0 {
		delete(m.clients, s.Client)
	}
	return true
}

// Find returns a session, or ErrNone.
func (m *Memory) Find(_ context.Context, key string) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[key]
	if s == nil {
		return nil, ErrNone
	}
	found := *s
	found.Subscriptions = slices.Clone(s.Subscriptions)
	return &found, nil
}

// List returns up to n sessions, those that were opened last first: it does not know when sessions are used.
func (m *Memory) List(_ context.Context, n int) ([]Listed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Listed
	for key, s := range m.sessions {
		list = append(list, Listed{Session: *s, Opened: m.opened[key]})
	}
	slices.SortFunc(list, func(a, b Listed) int { return b.Opened.Compare(a.Opened) })
	return list[:min(n, len(list))], nil
}

// Remove ends a session. It reports whether there was one.
func (m *Memory) Remove(_ context.Context, key string) (there bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remove(key), nil
}

// Release ends a session that has been idle for long.
func (m *Memory) Release(key string) { _, _ = m.Remove(context.Background(), key) } // it cannot fail

// SetLevel keeps the level of logging/setLevel.
func (m *Memory) SetLevel(_ context.Context, key, level string) error {
	return m.change(key, func(s *Session) { s.Level = level })
}

// Subscribe keeps a subscription.
func (m *Memory) Subscribe(_ context.Context, key, uri string) error {
	return m.change(key, func(s *Session) {
		if !slices.Contains(s.Subscriptions, uri) {
			s.Subscriptions = append(s.Subscriptions, uri)
		}
	})
}

// Unsubscribe ends a subscription.
func (m *Memory) Unsubscribe(_ context.Context, key, uri string) error {
	return m.change(key, func(s *Session) {
		s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(other string) bool { return other == uri })
	})
}

func (m *Memory) change(key string, change func(*Session)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[key]; s != nil {
		change(s)
	}
	return nil
}
