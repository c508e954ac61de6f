package pipeline

import (
	"encoding/json"
	"sync"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/toolset"
)

// offer is the part of the catalog that a caller is offered: all of it, or a toolset's view of it.
type offer struct {
	*catalog.View
	set *toolset.View // nil: everything
}

// arguments returns the arguments for the tool in the catalog; see toolset.View.Arguments.
func (o offer) arguments(tool string, given json.RawMessage) (json.RawMessage, error) {
	if o.set == nil {
		return given, nil
	}
	return o.set.Arguments(tool, given)
}

// offers are the views of toolsets in use, of one snapshot of the catalog and one configuration. The zero value is
// ready.
type offers struct {
	mu     sync.Mutex
	of     *catalog.View
	config *toolset.Config
	views  map[string]*toolset.View
	// listings are the views as frontends list them, by view.
	listings map[*catalog.View]*catalog.View
}

// reset forgets the views of another snapshot or configuration. o.mu is held.
func (o *offers) reset(of *catalog.View, config *toolset.Config) {
	if o.of != of || o.config != config {
		o.of, o.config = of, config
		o.views, o.listings = map[string]*toolset.View{}, map[*catalog.View]*catalog.View{}
	}
}

// view returns the view of the set with this name. The view of an unknown set is empty.
func (o *offers) view(of *catalog.View, config *toolset.Config, name string) *toolset.View {
	set := config.Set(name)
	if set == nil {
		name = ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reset(of, config)
	view := o.views[name]
	if view == nil {
		view = set.Apply(of)
		o.views[name] = view
	}
	return view
}

// offer returns the offer to the caller.
func (p *Pipeline) offer(caller *Caller) offer {
	view, name := p.catalog.View(), p.toolsetName(caller)
	if name == "" {
		return offer{View: view}
	}
	set := p.offers.view(view, p.settings.Load().Toolsets, name)
	return offer{set.View, set}
}

// offerFor returns the offer to which the names of the call belong.
func (p *Pipeline) offerFor(call *Call) offer {
	if call.unshaped {
		return offer{View: p.catalog.View()}
	}
	return p.offer(&call.Caller)
}

// toolsetName returns the name of the caller's toolset, or "" for everything.
func (p *Pipeline) toolsetName(caller *Caller) string {
	name, config := caller.Toolset, p.settings.Load().Toolsets
	switch {
	case name != "" || config == nil:
	case config.Local != "" && (caller.Frontend == FrontendTerminal || caller.Frontend == FrontendStdio):
		name = config.Local
	default:
		name = config.For(p.toolsetCaller(caller))
	}
	if name == toolset.All {
		return ""
	}
	return name
}

// MayChoose reports whether the caller may use the toolset that it names, at the toolset's own endpoint.
func (p *Pipeline) MayChoose(caller Caller) bool {
	set := p.settings.Load().Toolsets.Set(caller.Toolset)
	return set != nil && set.For.Has(p.toolsetCaller(&caller))
}

func (p *Pipeline) toolsetCaller(caller *Caller) *toolset.Caller {
	return &toolset.Caller{Frontend: caller.Frontend, Tenant: caller.Tenant, User: caller.User, Token: caller.Token,
		Channel: caller.Channel, Groups: p.groupsOf(caller)}
}

// groupsOf returns the caller's groups: those that the frontend knows and those of the policy.
func (p *Pipeline) groupsOf(caller *Caller) []string {
	if p.options.Policy == nil {
		return caller.Groups
	}
	return p.options.Policy().GroupsOf(&policy.Call{User: caller.User, Groups: caller.Groups})
}

// View returns the offer to the caller, with the offered names and forms. Frontends list nothing
// else. The policy may forbid some of it: see Visible. Of a large catalog only a part is listed: see toolset.Search.
func (p *Pipeline) View(caller Caller) *catalog.View { return p.listing(p.offer(&caller)) }
