package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// applyFlags are the flags of "agent apply".
type applyFlags struct{ dryRun, yes, adopt bool }

func (a *app) agentApplyCommand() *cobra.Command {
	var flags applyFlags
	cmd := &cobra.Command{
		Use:   "apply [AGENT]...",
		Short: "Publish hako's tools to managed agents",
		Long: `Publish the tools that the policy lets managed agents call, as custom tools of these agents. The changes
are shown first. After your approval each changed agent gets a new version. Without an AGENT, the command updates those
of agent.agents in hako.yaml.

Only custom tools that hako created are changed; hako records them in the agent's metadata (hako_tools_1 and so on).
Built-in toolsets, MCP servers and your own custom tools stay. Running sessions keep their version.

Exit codes: 0 done, or nothing to do; 1 not approved, or another failure; 2 usage or configuration.`,
		Example: `  hako agent apply --dry-run
  hako agent apply agent_011CZkZ --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				if len(args) == 0 {
					args = v.config.Agent.Agents
				}
				if len(args) == 0 {
					return usageError(cmd, errors.New(
						"no agent is named: pass its ID, or set agent.agents in hako.yaml"))
				}
				return a.withUpstreams(cmd.Context(), v.config, v.host.Catalog(),
					func(servers []mcpclient.Status) error {
						return a.applyTools(cmd.Context(), v, inspect.Unlisted(servers), args, flags)
					})
			})
		},
	}
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&flags.adopt, "adopt", false,
		"take over custom tools of the agent that have the names of hako's tools")
	cmd.Flags().String("locale", "en", "the language of descriptions: en, ja")
	config.Flag(cmd.Flags(), "locale", "locale")
	return cmd
}

// applyTools gives agents the tools. unlisted are the upstream servers whose tools are not known.
func (a *app) applyTools(ctx context.Context, v *view, unlisted, agents []string, flags applyFlags) error {
	definitions, err := a.definitions(v)
	if err != nil {
		return err
	}
	publisher, err := agent.NewPublisher(v.config.Agent, v.config.ProxyURL())
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	plans, err := a.planAll(ctx, publisher, agents, definitions, flags.adopt)
	if err != nil {
		return err
	}
	switch {
	case flags.dryRun || len(plans) == 0:
		return nil
	case len(unlisted) > 0 && slices.ContainsFunc(plans, (*agent.Plan).Removes):
		return &exitError{exitFailed, fmt.Errorf("nothing was changed: the tools of %s are unknown, and would be "+
			"removed: fix or remove that server (hako upstreams)", strings.Join(unlisted, ", "))}
	case !flags.yes && !a.agrees("Apply?"):
		return &exitError{exitFailed, errors.New("nothing was changed")}
	}
	for _, plan := range plans {
		if err := a.publish(ctx, v.config, publisher, plan); err != nil {
			return err
		}
	}
	return nil
}

// planAll shows what changes in each agent, and returns the plans in which something does.
func (a *app) planAll(ctx context.Context, publisher *agent.Publisher, agents []string, definitions []agent.Definition,
	adopt bool) (plans []*agent.Plan, err error) {
	for _, id := range agents {
		plan, err := publisher.Plan(ctx, id, definitions, adopt)
		if err != nil {
			return nil, agentFailure(err)
		}
		printAgentPlan(a.stdout, plan)
		if !plan.Empty() {
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// agentFailure is a failure of the API, as opposed to a usage error.
func agentFailure(err error) error {
	var e *agent.Error
	if errors.As(err, &e) && e.Kind != agent.Auth && e.Kind != agent.Gone || errors.Is(err, agent.ErrChanged) {
		return &exitError{exitFailed, err}
	}
	return err
}

// publish makes a new version of an agent, which is recorded.
func (a *app) publish(ctx context.Context, c *config.Config, publisher *agent.Publisher, plan *agent.Plan) error {
	var version int64
	err := a.audited(ctx, c, plan.Operation(), func() (err error) {
		version, err = publisher.Apply(ctx, plan)
		return err
	})
	if err != nil {
		return agentFailure(fmt.Errorf("agent %s: %w", plan.Agent, err))
	}
	printf(a.stdout, "Agent %s now has version %d. New sessions have its tools.\n", plan.Agent,
		version)
	return nil
}

// printAgentPlan prints what would change in an agent.
func printAgentPlan(out io.Writer, p *agent.Plan) {
	printf(out, "Agent %s (%s), version %d\n", p.Agent, p.Name, p.Version)
	for _, c := range p.Changes {
		printf(out, "  %s\n", c.Text())
		if c.New != nil && (c.Old == nil || c.Old.Description != c.New.Description) {
			printf(out, "      %s\n", terminal.Summary(c.New.Description))
		}
	}
	switch {
	case p.Empty():
		fmt.Fprintln(out, "  has the tools as they are")
	case len(p.Changes) == 0:
		fmt.Fprintln(out, "  has the tools as they are; hako notes in its metadata that they are its own")
	}
	if len(p.Kept) > 0 {
		printf(out, "  stays as it is: %s\n", strings.Join(p.Kept, ", "))
	}
}
