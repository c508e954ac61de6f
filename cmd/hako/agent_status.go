package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/store"
)

// mostAgentCalls limits the calls that "hako agent status" lists.
const mostAgentCalls = 1000

func (a *app) agentStatusCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running calls of managed agents",
		Long: `Show the running calls of managed agents, from hako's store: taken (not started yet, perhaps pending
approval), running, or answered (the result has not been sent yet). With --all also the ended ones of the last 30 days:
sent, or dropped (they were interrupted, or their session has ended).

A call whose process has died is "left": the next "hako agent run" that follows its session ends it.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(_ *config.Config, s *store.Store) error {
				list, err := agent.Calls(cmd.Context(), s, all, mostAgentCalls)
				if err != nil {
					return err
				}
				return showList(a, list, "No calls.", printAgentCalls)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also calls that have ended")
	return a.withJSON(cmd)
}

// printAgentCalls prints the calls of managed agents.
func printAgentCalls(out io.Writer, list []agent.Status) error {
	return printTable(out, "SESSION\tCALL\tTOOL\tSTATE\tTAKEN", list, func(c agent.Status) []any {
		state := string(c.State)
		if !c.Alive && c.State != agent.StateSent && c.State != agent.StateDropped {
			state += ", left"
		}
		return []any{c.Session, c.Call, c.Tool, state, moment(c.Taken)}
	})
}
