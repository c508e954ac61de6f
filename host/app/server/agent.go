package server

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/pipeline"
)

// checkAgent returns an error if the configuration of agents is not usable.
func checkAgent(c *config.Config) error {
	if err := c.CheckTenant(c.Agent.Tenant); err != nil {
		return fmt.Errorf("configuration: agent.tenant: %w", err)
	}
	if err := c.Agent.Check(); err != nil {
		return fmt.Errorf("configuration: agent: %w", err)
	}
	return nil
}

// AgentTools returns the tools of h that the policy lets managed agents call, or ask to. It is an error if there are
// more than an agent can have.
func AgentTools(c *config.Config, h *host.Host) (list []*catalog.Tool, err error) {
	if err := c.CheckTenant(c.Agent.Tenant); err != nil {
		return nil, err
	}
	live, err := policy.OpenLive(c.Policy)
	if err != nil {
		return nil, err
	}
	if !c.ResultsDisabled { // as the server that runs the agent's tools keeps them
		if err := results.New(nil).Offer(h.Catalog()); err != nil {
			return nil, err
		}
	}
	caller := pipeline.Caller{Frontend: pipeline.FrontendAgent, Tenant: c.Agent.Tenant, User: c.Agent.User}
	for _, tool := range h.View(caller).Tools {
		visible := tool.Source.Own || live.Policy().Visible(&policy.Call{
			Tool: tool.Real().Name, Plugin: tool.Source.Name, Annotations: tool.Hints(),
			Frontend: caller.Frontend, Tenant: caller.Tenant, User: caller.User,
		})
		if visible && h.Offered(c.Agent.Tenant, tool) {
			list = append(list, tool)
		}
	}
	if n := len(list); n > agent.MaxTools {
		return nil, fmt.Errorf("the policy lets agents call %d tools, and an agent takes %d: let it deny some "+
			"(frontends: [agent])", n, agent.MaxTools)
	}
	return list, nil
}

// agentFrontend is the part with the runner of the configuration in force, and with earlier runners that finish calls.
// The server ends when all sessions have ended.
type agentFrontend struct {
	server *Server

	// mu guards the fields below.
	mu     sync.Mutex
	now    *agent.Runner
	config *config.Config // of now
	// launch runs a runner. Nil: the part does not run.
	launch func(*agent.Runner)
}

func (f *agentFrontend) start(ctx context.Context) error {
	runner, err := f.newRunner(ctx, f.server.Config)
	if err != nil {
		return err
	}
	f.replace(runner, f.server.Config)
	return nil
}

func (f *agentFrontend) newRunner(ctx context.Context, c *config.Config) (*agent.Runner, error) {
	s, h := f.server, f.server.plugins.host.Load()
	return agent.New(ctx, &agent.Options{
		Spec: c.Agent, Tools: h.Tools, Call: h.Call, Store: s.governance.Store, Locale: c.Locale,
		Proxy: c.ProxyURL(), Grace: s.Grace, Observer: s.observability.metrics, Logger: s.Logger,
		Known: func(name string) bool {
			_, known := h.View(pipeline.Caller{Frontend: pipeline.FrontendAgent, Tenant: c.Agent.Tenant,
				User: c.Agent.User}).Tool(name)
			return known
		},
		Lost: func(caller pipeline.Caller, tool string) {
			s.governance.record(&audit.Event{
				Action: "agent.call", Outcome: audit.OutcomeFailed, Error: "the process died during the call",
				Target: audit.Target{Name: tool}, RequestID: caller.RequestID,
				Subject: audit.Subject{
					Frontend: caller.Frontend, Tenant: caller.Tenant, User: caller.User, Session: caller.Session,
				},
			})
		},
	})
}

// replace puts the runner of a configuration in the place of the current one, which finishes its calls.
func (f *agentFrontend) replace(runner *agent.Runner, c *config.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.now
	f.now, f.config = runner, c
	if f.launch != nil {
		f.launch(runner)
	}
	if before != nil {
		before.Retire()
	}
}

func (f *agentFrontend) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	f.mu.Lock()
	f.launch = func(runner *agent.Runner) { group.Go(func() error { return f.follow(ctx, runner) }) }
	f.launch(f.now)
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.launch = nil
	f.mu.Unlock()
	return group.Wait()
}

// follow runs a runner. It returns errDone when all sessions of the current runner have ended; how a replaced one ends
// is only logged.
func (f *agentFrontend) follow(ctx context.Context, runner *agent.Runner) error {
	err := runner.Run(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.now == runner && err == nil:
		return errDone
	case f.now == runner:
		return err
	case err != nil:
		f.server.Logger.Warn(
			"calls of managed agents had begun under the configuration before, and could not be finished", "err", err)
	}
	return nil
}

func (*agentFrontend) keys() []string {
	return []string{"agent", "tenants", "locale", "outbound.proxy"}
}

func (f *agentFrontend) prepare(ctx context.Context, next *config.Config) (*change, error) {
	if err := checkAgent(next); err != nil {
		return nil, err
	}
	f.mu.Lock()
	now := f.config
	f.mu.Unlock()
	if reflect.DeepEqual(now.Agent, next.Agent) && now.Locale == next.Locale &&
		reflect.DeepEqual(now.ProxyURL(), next.ProxyURL()) {
		return silently(func() {}), nil
	}
	runner, err := f.newRunner(ctx, next)
	if err != nil {
		return nil, err
	}
	return silently(func() { f.replace(runner, next) }), nil
}
