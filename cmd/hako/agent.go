package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/agent"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/metrics"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/httpserver"
)

func (a *app) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the tools of managed agents",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.agentRunCommand(), a.agentToolsCommand(), a.agentApplyCommand(), a.agentStatusCommand())
	return cmd
}

func (a *app) agentRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Answer the tool calls of managed agents",
		Long: `Answer the tool calls of Anthropic's managed agents: follow their sessions, run the tools that they call as custom tools, under the same
policy, limits and records as at every other frontend, and send the results back. What is followed is under "agent" in hako.yaml; a flag takes the place
of the list there.

The configuration is read again when its file changes and on SIGHUP, as by "hako serve": calls that have begun end under the old one.

A call is written into the store before it runs, so that none is made twice and none is forgotten, also by several processes over one
store. SIGINT or SIGTERM ends it: no more calls are taken, tools that run may answer until their limit on time ends (shutdown.grace), and
the next start goes on where this one ended. What is left 10 seconds after that is given up; a second signal ends it at once.

Exit codes: 0 stopped, or all sessions have ended; 2 usage, configuration, or the key is refused.`,
		Example: `  hako agent run --agent agent_011CZkZ
  hako agent run --session sesn_011CZkZ`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := serveFlags{source: a.source(cmd)}
			flags.read = flags.source.Digest() // which is not newer than what is read next
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.runAgent(cmd.Context(), c, flags)
		},
	}
	flags := cmd.Flags()
	flags.StringSlice("agent", nil, "follow the sessions of this agent; may be given several times")
	config.Flag(flags, "agent", "agent.agents")
	flags.StringSlice("environment", nil, "follow the sessions in this environment; may be given several times")
	config.Flag(flags, "environment", "agent.environments")
	flags.StringSlice("session", nil, "follow this session until it ends; may be given several times")
	config.Flag(flags, "session", "agent.sessions")
	flags.String("follow", agent.FollowStream, "stream or poll")
	config.Flag(flags, "follow", "agent.follow")
	return cmd
}

// runAgent follows the sessions of the configuration until ctx ends.
func (a *app) runAgent(ctx context.Context, c *config.Config, flags serveFlags) (err error) {
	if err := checkAgent(c); err != nil {
		return err
	}
	s := &service{config: c, flags: flags, level: new(slog.LevelVar)}
	defer a.endAtLast(ctx, s.grace)()
	defer func() { err = errors.Join(err, s.close()) }()
	s.level.Set(logLevels[c.LogLevel])
	s.logger = a.logger(c, s.level)
	orders, deaf := a.orders()
	s.hangups = orders
	s.atEnd(deaf)
	if err := c.AwaitStore(ctx, s.logger); err != nil {
		return err
	}
	if err := s.openGovernment(ctx); err != nil { // and no replica: the jobs that one of several does are none of its
		return err
	}
	if err := s.openHost(ctx, a, nil); err != nil {
		return err
	}
	runners, err := s.openAgents(ctx, a)
	if err != nil {
		return err
	}
	return s.followAgents(ctx, runners)
}

// openAgents connects the upstream servers, and makes what follows the sessions.
func (s *service) openAgents(ctx context.Context, a *app) (*agentRunners, error) {
	stopUpstreams, err := s.connectUpstreams(ctx, s.config, s.credentials, s.watched.numbers)
	if err != nil {
		return nil, err
	}
	s.atEnd(stopUpstreams)
	s.atEnd(s.government.approvals.Watch(nil, s.government.waits))
	s.atEnd(a.answerHere(ctx, s.government.approvals, s.config.Locale))
	warnUnknown(s.config, s.host.Plugins(), s.logger)
	runners := &agentRunners{logger: s.logger, make: func(ctx context.Context, c *config.Config) (*agent.Runner,
		error) {
		return newAgentRunner(ctx, c, s.host, s.government, s.watched.numbers, s.grace, s.logger)
	}}
	first, err := runners.make(ctx, s.config)
	if err != nil {
		return nil, err
	}
	runners.change(first, s.config)
	s.reloader.others, s.reloader.parts = serveKeys, []part{
		logPart(s.level), tracesPart(s.watched), credentialsPart(s.credentials), pluginsPart(s.host, s.logger),
		upstreamsPart(s.upstreams), approvalsPart(s.government),
		agentPart(runners),
	}
	return runners, nil
}

func newAgentRunner(ctx context.Context, c *config.Config, h *host.Host, g *government, numbers *metrics.Metrics,
	grace func() time.Duration, logger *slog.Logger) (*agent.Runner, error) {
	return agent.New(ctx, &agent.Options{
		Spec: c.Agent, Tools: toolsOf(h), Call: h.Call, Store: g.store, Locale: c.Locale, Proxy: c.ProxyURL(),
		Grace: grace, Observer: numbers, Logger: logger,
		Known: func(name string) bool {
			_, known := h.Catalog().View().Tool(name)
			return known
		},
		Lost: func(caller pipeline.Caller, tool string) {
			g.record(&audit.Event{
				Action: "agent.call", Outcome: "failed", Error: "the process died in the middle of it",
				Target:    audit.Target{Name: tool},
				RequestID: caller.RequestID,
				Subject: audit.Subject{Frontend: caller.Frontend, Tenant: caller.Tenant, User: caller.User,
					Session: caller.Session},
			})
		},
	})
}

// followAgents runs until ctx or the runners end, and shows metrics meanwhile where the configuration has an address
// for them.
func (s *service) followAgents(ctx context.Context, runners *agentRunners) error {
	defer s.reloader.close() // before what it reconfigures
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if err := s.serveNumbers(ctx, group); err != nil {
		return err
	}
	group.Go(func() error { return s.host.Watch(ctx) })
	group.Go(func() error { return s.reloader.follow(ctx, s.hangups) })
	group.Go(func() error {
		defer stop()
		return runners.run(ctx)
	})
	notify(notifyReady)
	context.AfterFunc(ctx, func() { notify(notifyStopping(s.grace() + closeTime)) })
	return group.Wait()
}

// serveNumbers serves the metrics until ctx ends.
func (s *service) serveNumbers(ctx context.Context, group *errgroup.Group) error {
	address, numbers := s.config.MetricsAddress, s.watched.handler()
	if address == "" || numbers == nil {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("metrics.address: %w", listenError("metrics.address", address, err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", numbers)
	server := httpserver.New(address, mux, s.logger)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return &exitError{exitFailed, fmt.Errorf("serve metrics: %w", err)}
		}
		return nil
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}
