package main

import (
	"context"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/host/app/config"
)

func (a *app) devAgentCommand() *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "agent TEXT",
		Short: "Give a task to a fake managed agent, without any account",
		Long: `Give a task to a fake managed agent that follows a script. It gets the shipped tools as with "hako agent
apply", and its calls are answered as with "hako agent run", with the fakes of "hako dev fakes". This shows a complete
session, with a policy that requires approval of writes. The events are printed. Nothing leaves the machine, and nothing
is stored.

--script takes another script: docs/fakes.md describes them.`,
		Example: `  hako dev agent 東京の天気は？`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := a.devSteps(cmd, path)
			if err != nil {
				return err
			}
			return a.onFakes(cmd, steps, "", func(d *demo.Demo) error {
				d.Fakes.ManagedAgents.Script = steps
				return a.devAgent(cmd.Context(), d.Config, d.Fakes.ManagedAgents, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "the actions of the agent, in YAML")
	return cmd
}

// devAgent gives the fake its tools, and runs one session of it until its agent has nothing more to say.
func (a *app) devAgent(ctx context.Context, c *config.Config, fake *managedagents.Server, text string) error {
	if err := a.devApply(ctx, c); err != nil {
		return err
	}
	session := fake.NewSession()
	c.Agent.Agents, c.Agent.Sessions = nil, []string{session}
	if c.Origin("log.level") == config.OriginDefault {
		c.LogLevel = "error"
	}
	if err := fake.Tell(session, text); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	source := config.Source{File: c.File}
	options := a.serverOptions(c, source, source.Digest())
	group.Go(func() error { return a.runAgent(ctx, options) })
	group.Go(func() error {
		defer stop()
		demo.FollowSession(ctx, fake, session, func(line string) { printf(a.stdout, "%s\n", line) })
		return nil
	})
	return group.Wait()
}

// devApply gives the fake the tools as "hako agent apply" does, and prints which.
func (a *app) devApply(ctx context.Context, c *config.Config) (err error) {
	h, err := a.hostFor(ctx, c, nil)
	if err != nil {
		return err
	}
	defer func() { err = closing(h, err) }()
	definitions, err := a.definitions(&view{config: c, host: h})
	if err != nil {
		return err
	}
	summary, err := demo.ApplyTools(ctx, c.Agent, definitions)
	if err != nil {
		return err
	}
	return printf(a.stdout, "applied: %s\n", summary)
}
