package slack

import (
	"cmp"
	"maps"
	"slices"
)

// Changed returns a channel that is closed when something may have changed of what the others below return.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// touch wakes the waiters of Changed. The caller holds mu.
func (s *Server) touch() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Users returns the members of the workspace, by ID.
func (s *Server) Users() []User {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []User
	for _, u := range s.users {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b User) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Channel is a conversation as its members see it.
type Channel struct {
	ID, Name string
	// With is the person of a direct message, or empty.
	With    string
	Members []string
}

// Channels returns the conversations, by ID.
func (s *Server) Channels() []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Channel
	for _, c := range s.channels {
		list = append(list, Channel{c.id, c.name, c.user, slices.Clone(c.members)})
	}
	slices.SortFunc(list, func(a, b Channel) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Sessions are the statuses of the agent's sessions, by "CHANNEL:THREAD".
func (s *Server) Sessions() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.sessions)
}

// File is one that was uploaded.
type File struct {
	Name, Type string
	Data       []byte
}

// File returns the one of that identifier.
func (s *Server) File(id string) (File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f == nil {
		return File{}, false
	}
	return File{f.name, f.kind, f.data}, true
}
