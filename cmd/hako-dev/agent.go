package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/internal/visible"
)

func (a *app) agentCommand() *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "agent TEXT [-- FLAGS]",
		Short: "Give a task to a fake managed agent, without any account",
		Long: `Give a task to a fake managed agent that follows a script. "hako agent apply" gives it the shipped tools, and
"hako agent run" answers its calls, with the fakes of "hako-dev fakes". This shows a complete session, with a policy
that requires approval of writes. The events are printed. Nothing leaves the machine, and nothing is stored.

--script takes another script: docs/fakes.md describes them. FLAGS are flags of hako agent run.`,
		Example: `  hako-dev agent 東京の天気は？`,
		Args:    arguments(1, true),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			steps, err := readScript(cmd, path)
			if err != nil {
				return err
			}
			d, err := demo.Start(steps, demo.Quiet)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			d.Fakes.ManagedAgents.Script = steps
			err = a.runHako(cmd.Context(), nil,
				"agent", "apply", managedagents.DefaultAgent, "--yes", "--config", d.Config)
			if err != nil {
				return err
			}
			return a.runSession(cmd.Context(), d, args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "the actions of the agent, in YAML")
	return cmd
}

// runSession runs one session of the fake until its agent has nothing more to say. args are flags of "hako agent run".
func (a *app) runSession(ctx context.Context, d *demo.Demo, text string, args []string) error {
	fake := d.Fakes.ManagedAgents
	session := fake.NewSession()
	if err := fake.Tell(session, text); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer stop()
		return a.runHako(ctx, a.stdin,
			append([]string{"agent", "run", "--config", d.Config, "--agent=", "--session", session}, args...)...)
	})
	group.Go(func() error {
		events := visible.NewWriter(a.stdout)
		demo.FollowSession(following, fake, session, func(line string) { fmt.Fprintln(events, line) })
		fake.Terminate(session) // at which hako ends
		return nil
	})
	return group.Wait()
}
