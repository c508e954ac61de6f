package mcpclient

import (
	"time"
)

// State says how a server stands.
type State string

// States.
const (
	Connecting State = "connecting" // for the first time
	Up         State = "up"         // its tools can be called
	Down       State = "down"       // it failed, and is tried again
	Disabled   State = "disabled"   // by the configuration
)

// States lists them all.
var States = []State{Connecting, Up, Down, Disabled}

// Status is one server as an operator sees it.
type Status struct {
	Name, Prefix string
	// Transport is "stdio" or "http".
	Transport string
	State     State
	// Since is when it came into this state.
	Since time.Time
	// Error says why it is down, and Retry when it is tried again.
	Error string
	Retry time.Time
	// Protocol is the version that is spoken; Server and Version are what the server calls itself.
	Protocol, Server, Version string
	// Tools, Prompts and Resources count what is on offer; Resources has the templates too.
	Tools, Prompts, Resources int
	// Omitted says what the server has and is not offered, and why.
	Omitted []string
	// Restarts counts how often it was started or connected again.
	Restarts int
}

func (s *Spec) transport() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// Status is how the server stands now.
func (s *server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	if status.State == Up {
		m := s.offer.manifest
		status.Tools, status.Prompts, status.Resources = len(m.Tools), len(m.Prompts),
			len(m.Resources)+len(m.ResourceTemplates)
		status.Omitted = s.offer.omitted
	}
	return status
}

// up takes a session into service.
func (s *server) up(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = x
	close(s.arrived)
	about := x.sdk.InitializeResult()
	s.status.State, s.status.Since, s.status.Error, s.status.Retry = Up, time.Now(), "", time.Time{}
	s.status.Protocol = about.ProtocolVersion
	if about.ServerInfo != nil {
		s.status.Server, s.status.Version = oneLineOf(about.ServerInfo.Name), oneLineOf(about.ServerInfo.Version)
	}
}

// lost takes a session out of service.
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
	s.mu.Unlock()
	if !repeated {
		s.logger.Warn("an upstream server is down and will be tried again", "err", text, "in",
			retry.Round(time.Millisecond))
	}
}

func (s *server) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Restarts++
}
