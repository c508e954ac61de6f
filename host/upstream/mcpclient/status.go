package mcpclient

import (
	"slices"
	"time"
)

// State is the state of a server.
type State string

// States.
const (
	Connecting State = "connecting" // for the first time, or for a call after it was idle
	Up         State = "up"         // its tools can be called
	Idle       State = "idle"       // disconnected until the next call
	Down       State = "down"       // it failed and is retried
	Disabled   State = "disabled"   // by the configuration
)

// States lists all states.
var States = []State{Connecting, Up, Idle, Down, Disabled}

// Status describes a server for operators.
type Status struct {
	Name, Prefix string
	// Transport is "stdio" or "http".
	Transport string
	State     State
	// Since is the time of the last change of State.
	Since time.Time
	// Error is the cause of State Down, or of the end of the last session in State Idle. Retry is the time of the next
	// attempt in State Down.
	Error string
	Retry time.Time
	// Protocol is the protocol version. Server and Version are the server's own name and version.
	Protocol, Server, Version string
	// Listed reports whether the server's lists are known and on offer. Cached reports whether they are from the cache,
	// and that the server has not been connected since then.
	Listed, Cached bool
	// Tools, Prompts and Resources count the entries in the catalog. Resources includes templates.
	Tools, Prompts, Resources int
	// Omitted lists the server's entries that are not offered, and why.
	Omitted []string
	// Restarts counts reconnections and restarts.
	Restarts int
}

func (s *Spec) transport() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// Status returns the current state.
func (s *server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	if status.Listed {
		m := s.offer.manifest
		status.Tools, status.Prompts, status.Resources = len(m.Tools), len(m.Prompts),
			len(m.Resources)+len(m.ResourceTemplates)
		status.Omitted = slices.Concat(s.spec.Notes, s.offer.omitted)
	}
	return status
}

// up sets the current session.
func (s *server) up(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = x
	close(s.arrived)
	s.lastUse = time.Now()
	about := x.sdk.InitializeResult()
	s.status.State, s.status.Since, s.status.Error, s.status.Retry = Up, time.Now(), "", time.Time{}
	s.status.Protocol = about.ProtocolVersion
	if about.ServerInfo != nil {
		s.status.Server, s.status.Version = oneLineOf(about.ServerInfo.Name), oneLineOf(about.ServerInfo.Version)
	}
}

// lost unsets the current session.
func (s *server) lost(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == x {
		s.session, s.arrived = nil, make(chan struct{})
	}
}

// down records why there is no session.
func (s *server) down(err error, retry time.Duration) {
	s.mu.Lock()
	if s.status.State != Down {
		s.status.Since = time.Now()
	}
	text := oneLineOf(err.Error())
	repeated := s.status.State == Down && s.status.Error == text
	s.status.State, s.status.Error, s.status.Retry = Down, text, time.Now().Add(retry)
	close(s.attemptFailed)
	s.attemptFailed = make(chan struct{})
	s.mu.Unlock()
	if !repeated {
		s.logger.Warn("an upstream server is down and will be tried again", "err", text, "in",
			retry.Round(time.Millisecond))
	}
}

// idle records that the server is disconnected until it is needed. err is why its last session ended, or nil.
func (s *server) idle(err error) {
	text := ""
	if err != nil {
		text = oneLineOf(err.Error())
		s.logger.Warn("an upstream server has exited and will be restarted for the next call", "err", text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since, s.status.Error, s.status.Retry = Idle, time.Now(), text, time.Time{}
}

// starting records that an idle server is being connected.
func (s *server) starting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Since = Connecting, time.Now()
}

func (s *server) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Restarts++
}
