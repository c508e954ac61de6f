package catalog

import (
	"context"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// Backend serves the requests for a source. *sandbox.Plugin implements it.
type Backend interface {
	// Call serves one request. It neither changes nor keeps the Invocation.
	Call(ctx context.Context, invocation *Invocation) (*abi.Response, error)
}

// Subscriber is a Backend that notifies only about changes of subscribed resources.
type Subscriber interface {
	// Subscribe calls updated whenever the resource changes, until stop is called. uri is the catalog's. Neither
	// function blocks. updated is called from any goroutine, must be quick and must not call the Subscriber.
	Subscribe(uri string, updated func()) (stop func())
}

// Invocation is one request to a Backend, with its caller.
type Invocation struct {
	// Request has the source's own Name, without Source.Prefix.
	Request *abi.Request
	// Limits override the backend's limits where they are not zero.
	Limits manifest.Limits
	// Progress receives reports during the call, one at a time. It may be nil.
	Progress func(abi.Progress)
	// Updated receives the URIs of changed resources after the call, also after a failed one, each once. They are the
	// backend's and not validated. It may be nil.
	Updated func(uri string)
	// Ask asks a person to agree to an operation of the backend, once per question; an error means no. It may be
	// nil: then nobody can be asked.
	Ask func(ctx context.Context, q broker.Question) error
	// Tools calls other tools as the caller. It may be nil: then there are none.
	Tools broker.Tools
	// Elicit asks the caller a question of the backend and waits for the answer. An error says why no person answered,
	// in words for the caller: an *elicitation.RuleError for a question that is not allowed, or the error of ctx, which
	// must end before the Backend returns. The Answer is valid in any case. It may be nil: then nobody can be asked.
	Elicit func(ctx context.Context, r *elicitation.Request) (elicitation.Answer, error)
	// CanElicit reports whether Elicit can reach the caller.
	CanElicit bool
	// Tenant is the caller's; "" for callers without one. Nothing of one tenant may reach another.
	Tenant string
	// User is the caller's; "" if unknown. Guests share the processors fairly by tenant and user.
	User string
	// Session identifies the caller's session within the tenant. Empty means that there is none.
	Session string
	// Owner identifies the caller for what the host keeps for it: no other caller has the same one, but for callers
	// without authentication and session.
	Owner string
	// MaxResult limits the text of a result that the caller takes at once, in bytes. Zero means no limit.
	MaxResult int
	// Steps receives the steps that the guest computed, also after a failed call. It may be nil.
	Steps *int64
	// Delivery ends once the caller has the response, whose memory is charged until then. Nil means the context of the
	// call.
	Delivery context.Context
}

// Source is a plugin or an upstream server that offers something.
type Source struct {
	// Name is unique among the sources.
	Name string
	// Prefix precedes the names of tools and prompts in the catalog. It may be empty.
	Prefix string
	// Config is passed with every request, as JSON.
	Config []byte
	// Tenants maps tenants to their own Config.
	Tenants map[string][]byte
	// Roots are passed with every request, as JSON; see abi.Request.
	Roots []byte
	// Credentials are the names of credentials that each caller must have. Empty means none.
	Credentials []string
	// Asks reports whether calls may ask people questions while they run.
	Asks bool
	// Calls reports which tools its tools may call. Nil: they call none. Tools that call others cannot call each other.
	Calls broker.Granted
	// Upstream reports whether it is a server and not a plugin. A plugin never replaces a server of the same name, nor
	// vice versa.
	Upstream bool
	// Own reports whether it is part of the host. The policy decides nothing about it.
	Own bool
	// Finds reports whether its tools find and call those of View.Deferred, for models that cannot load these
	// themselves.
	Finds bool
	// Untrusted reports whether nobody vouches for its tool annotations; see Tool.Hints.
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
