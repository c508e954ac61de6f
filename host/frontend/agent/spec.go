package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Spec configures a Runner: the agents and sessions whose tools hako runs.
type Spec struct {
	// Key is the API key.
	Key secret.Source
	// BaseURL is the address of the API, without "/v1". Empty means Anthropic's own.
	BaseURL string
	// Workspace is the ID of the workspace ("wrkspc_…"), for a key that can act on several. Empty means the key's.
	Workspace string
	// Sessions are followed until they end. Runner also follows the sessions of Agents that run in Environments; an
	// empty list means all. At least one of the three lists must be set.
	Sessions, Agents, Environments []string
	// Tenant and User are those that the tools are called for, and whom the policy sees. User may be empty.
	Tenant, User string
	// Follow is FollowStream or FollowPoll. Empty means FollowStream.
	Follow string
	// Poll is the time between two looks with FollowPoll. Zero means 2 seconds.
	Poll time.Duration
	// Parallel limits the tools that run at once, of all sessions. Calls that wait for people do not count. Zero means
	// 8.
	Parallel int
	// Timeout bounds the run of one tool, without the time that people take to agree. Zero means 2 minutes.
	Timeout time.Duration
	// MaxResult bounds the text of one result, in bytes; a longer one is truncated with a note. Zero means 100 KiB.
	MaxResult int64
	// Unknown decides about calls of tools that hako does not have: UnknownRefuse or UnknownLeave. Empty means
	// UnknownRefuse.
	Unknown string
}

// Ways to follow a session.
const (
	FollowStream = "stream" // events arrive as they happen, over one connection for each session
	FollowPoll   = "poll"   // events are listed again and again
)

// Handling of calls of unknown tools.
const (
	UnknownRefuse = "refuse" // they get an error, so that the agent goes on without
	UnknownLeave  = "leave"  // another program answers them
)

// withDefaults returns s with defaults for unset fields.
func (s Spec) withDefaults() Spec {
	if s.Follow == "" {
		s.Follow = FollowStream
	}
	if s.Poll <= 0 {
		s.Poll = 2 * time.Second
	}
	if s.Parallel <= 0 {
		s.Parallel = 8
	}
	if s.Timeout <= 0 {
		s.Timeout = 2 * time.Minute
	}
	if s.MaxResult <= 0 {
		s.MaxResult = 100 << 10
	}
	if s.Unknown == "" {
		s.Unknown = UnknownRefuse
	}
	return s
}

// identifier matches the API's IDs, which become parts of paths.
var identifier = lazyregexp.New(`^[A-Za-z0-9_-]{1,128}$`)

// Check validates s. It fails if there is nothing to follow, for a malformed ID, a missing key, or an address to which
// a key must not be sent.
func (s Spec) Check() error {
	for _, id := range slices.Concat(s.Sessions, s.Agents, s.Environments) {
		if !identifier().MatchString(id) {
			return fmt.Errorf("%q is not an ID: IDs have letters, digits, _ and -, such as agent_011CZkZ", id)
		}
	}
	switch {
	case len(s.Sessions)+len(s.Agents)+len(s.Environments) == 0:
		return errors.New("there is nothing to follow: name an agent in agent.agents, or an environment or a session")
	case s.Follow != "" && s.Follow != FollowStream && s.Follow != FollowPoll:
		return fmt.Errorf("follow must be %[2]s or %[3]s, not %[1]q", s.Follow, FollowStream, FollowPoll)
	case s.Unknown != "" && s.Unknown != UnknownRefuse && s.Unknown != UnknownLeave:
		return fmt.Errorf("unknownTools must be %[2]s or %[3]s, not %[1]q", s.Unknown, UnknownRefuse, UnknownLeave)
	}
	return s.checkAccess()
}

// checkAccess validates the key and the address of the API.
func (s Spec) checkAccess() error {
	if s.Workspace != "" && !identifier().MatchString(s.Workspace) {
		return fmt.Errorf("workspace %q is not an ID: IDs have the form wrkspc_011CZkZ", s.Workspace)
	}
	if err := s.Key.Check(); err != nil {
		return fmt.Errorf("key %w", err)
	}
	return llm.CheckBaseURL(s.BaseURL, true)
}
