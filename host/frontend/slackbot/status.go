package slackbot

import "time"

// Status is the connection of a workspace.
type Status struct {
	// Name is the workspace's in the configuration.
	Name string
	// SocketMode reports whether events arrive over Socket Mode, and not as requests.
	SocketMode bool
	State      State
	// Since is the time at which State began, zero before the first connection is attempted.
	Since time.Time
	// Error is why the workspace is Down.
	Error string
}

// State reports whether hako is connected to a workspace.
type State string

// States of a workspace. With events as requests, Up means that Slack has accepted the bot's token.
const (
	Connecting State = "connecting"
	Up         State = "up"
	Down       State = "down"
)

// Status returns the connections of all workspaces.
func (b *Bot) Status() []Status {
	var list []Status
	for _, w := range b.workspaces {
		s := Status{State: Connecting}
		if now := w.connection.Load(); now != nil {
			s = *now
		}
		s.Name, s.SocketMode = w.Name, !w.AppToken.IsZero()
		list = append(list, s)
	}
	return list
}

// became notes another state. err may be nil.
func (w *workspace) became(state State, err error) {
	s := &Status{State: state, Since: time.Now()}
	if err != nil {
		s.Error = err.Error()
	}
	w.connection.Store(s)
}
