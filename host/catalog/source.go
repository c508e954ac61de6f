package catalog

import (
	"context"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Backend serves what a source offers. *sandbox.Plugin is one.
type Backend interface {
	// Call serves one request. It neither changes nor keeps the Invocation.
	Call(ctx context.Context, invocation *Invocation) (*abi.Response, error)
}

// Teller is a Backend that tells of changes of its resources only where it has been asked to.
type Teller interface {
	// Subscribe has updated called whenever the resource changes, until stop is called. uri is the one at the doors. Neither waits for
	// anything; updated is called from any goroutine, and must be quick and call nothing of the Teller.
	Subscribe(uri string, updated func()) (stop func())
}

// Invocation is one request on its way to a Backend, and on whose behalf.
type Invocation struct {
	// Request has the source's own Name.
	Request *abi.Request
	// Limits override the backend's; what is zero leaves them in force.
	Limits manifest.Limits
	// Progress receives reports during the call, one at a time. It may be nil.
	Progress func(abi.Progress)
	// Updated receives, after the call and however that ended, the URIs of resources that have changed, each once, as the backend has
	// them: nothing about them is checked. It may be nil.
	Updated func(uri string)
	// Ask asks a person to agree to what the backend is about to do, once for each question; an error is a no. It may be nil: then
	// nobody can be asked.
	Ask func(ctx context.Context, q broker.Question) error
	// Elicit puts a question of the backend's own to whoever made the call, and waits for the answer. An error says why there is none
	// of a person's, in words for the caller: an *elicitation.RuleError for a question that may not be asked, ctx's when that has ended,
	// which it must have when the Backend returns. The Answer is good for the backend in any case. It may be nil: then nobody can be asked.
	Elicit func(ctx context.Context, r *elicitation.Request) (elicitation.Answer, error)
	// Attended says that there is somebody whom Elicit can ask.
	Attended bool
	// Tenant is the caller's; "" is that of callers without one. Nothing of one tenant may reach another.
	Tenant string
	// User is the caller's; "" where nobody knows. Guests get the processor in fair shares by tenant and user.
	User string
	// Session tells the caller's session from all others of the tenant. Empty means that there is none.
	Session string
	// Steps receives, after the call and however that ended, how many steps the guest computed. It may be nil.
	Steps *int64
}

// Source is who offers something: a plugin, or an upstream server.
type Source struct {
	// Name is unique among the sources.
	Name string
	// Prefix is put in front of the names of tools and prompts at the doors. It may be empty.
	Prefix string
	// Config is passed along with every request, as JSON.
	Config []byte
	// Tenants hold what is passed instead of Config for callers of a tenant, by tenant.
	Tenants map[string][]byte
	// Credentials are names of which callers need one. Empty means that they need none.
	Credentials []string
	// Asks says that calls may put questions to people while they run.
	Asks bool
	// Upstream says that it is a server and no plugin: neither takes the place of the other, whatever its name.
	Upstream bool
	// Untrusted says that nobody has vouched for what it says of its tools; see Tool.Hints.
	Untrusted bool
	Backend   Backend
}

// ConfigFor returns the configuration for callers of the tenant.
func (s *Source) ConfigFor(tenant string) []byte {
	if config, ok := s.Tenants[tenant]; ok {
		return config
	}
	return s.Config
}
