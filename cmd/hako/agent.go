package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/agent"
)

func (a *app) agentCommand() *cobra.Command {
	return groupCommand("agent", "Run the tools of managed agents",
		a.agentRunCommand(), a.agentToolsCommand(), a.agentApplyCommand(), a.agentStatusCommand())
}

func (a *app) agentRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Answer the tool calls of managed agents",
		Long: `Answer the tool calls of Anthropic's managed agents: follow their sessions, run the tools that they call
as custom tools, under the same policy, limits and records as at every other frontend, and send the results back. The
section "agent" in hako.yaml lists what to follow; a flag replaces that list.

The configuration is read again when its file changes and on SIGHUP, as by "hako serve": running calls finish under
the old one.

A call is written to the store before it runs, so that no call is made twice or lost, even if several processes share
the store. SIGINT or SIGTERM starts a graceful shutdown: no more calls are accepted, running tools may finish within
their time limit (shutdown.grace), and the next start continues from there. 10 seconds later remaining calls are
abandoned. A second signal stops hako at once.

Exit codes: 0 stopped, or all sessions have ended; 2 usage, configuration, or the key is rejected.`,
		Example: `  hako agent run --agent agent_011CZkZ
  hako agent run --session sesn_011CZkZ`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := a.loadServerOptions(cmd)
			if err != nil {
				return err
			}
			return a.runAgent(cmd.Context(), options)
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
func (a *app) runAgent(ctx context.Context, o server.Options) error {
	return a.runServer(ctx, server.NewAgent, o, func(s *server.Server) error {
		defer a.terminal().AnswerQuestions(ctx, s.Approvals(), o.Config.Locale)()
		return s.Run(ctx)
	})
}
