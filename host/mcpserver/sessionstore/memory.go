package sessionstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrNotKept means that the store does not keep events, so that streams cannot be resumed.
var ErrNotKept = errors.New("events are not kept")

// Memory is the Store of a server that is alone. It keeps sessions for as long as the process runs, and no events.
type Memory struct {
	// mu guards what follows.
	mu       sync.Mutex
	sessions map[string]*Session
	opened   map[string]time.Time
	// clients counts the sessions of each client.
	clients map[string]int
}

var _ Store = (*Memory)(nil)

// NewMemory returns a Memory without sessions.
func NewMemory() *Memory {
	return &Memory{sessions: map[string]*Session{}, opened: map[string]time.Time{}, clients: map[string]int{}}
}

// Replica implements Store.
func (m *Memory) Replica() string { return "" }

// Add implements Store.
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

// Find implements Store.
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

// List implements Store. It does not know when sessions are used.
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

// Remove implements Store.
func (m *Memory) Remove(_ context.Context, key string) (there bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remove(key), nil
}

// Release implements Store.
func (m *Memory) Release(key string) { _, _ = m.Remove(context.Background(), key) } // it cannot fail

// Touch implements Store. Nobody else ends sessions.
func (m *Memory) Touch(context.Context, []string, []string, []string) ([]string, error) {
	return nil, nil
}

// SetLevel implements Store.
func (m *Memory) SetLevel(_ context.Context, key, level string) error {
	return m.change(key, func(s *Session) { s.Level = level })
}

// Subscribe implements Store.
func (m *Memory) Subscribe(_ context.Context, key, uri string) error {
	return m.change(key, func(s *Session) {
		if !slices.Contains(s.Subscriptions, uri) {
			s.Subscriptions = append(s.Subscriptions, uri)
		}
	})
}

// Unsubscribe implements Store.
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

// OpenStream implements Store.
func (m *Memory) OpenStream(context.Context, string, string, []json.RawMessage) error {
	return ErrNotKept
}

// Append implements Store.
func (m *Memory) Append(context.Context, string, string, Event, bool) error { return ErrNotKept }

// End implements Store.
func (m *Memory) End(context.Context, string, string) error { return ErrNotKept }

// Drop implements Store.
func (m *Memory) Drop(context.Context, string, string) error { return nil }

// Stream implements Store.
func (m *Memory) Stream(context.Context, string, string, int) (*Stream, error) { return nil, ErrNone }

// StreamChanges implements Store.
func (m *Memory) StreamChanges(context.Context, string) <-chan struct{} { return nil }

// Lives implements Store.
func (m *Memory) Lives(_ context.Context, replica string) (bool, error) { return replica == "", nil }

// Send implements Store.
func (m *Memory) Send(context.Context, Mail) error { return nil }

// SendTo implements Store.
func (m *Memory) SendTo(context.Context, string, Mail) (sent bool, err error) { return false, nil }

// Ask implements Store.
func (m *Memory) Ask(context.Context, string, Mail) (sent bool, err error) { return false, nil }

// Receive implements Store.
func (m *Memory) Receive(ctx context.Context, _ func(Mail), _ func(error)) { <-ctx.Done() }
