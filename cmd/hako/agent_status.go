package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/agent"
	"github.com/hako-run/hako/host/store"
)

// mostAgentCalls is how many calls "hako agent status" lists.
const mostAgentCalls = 1000

func (a *app) agentStatusCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the calls of managed agents that are under way",
		Long: `Show the calls of managed agents that are under way, as hako's store has them: taken (nothing has run yet, people may be asked), running,
or answered (the agent has not got the answer yet). With --all also those of the last 30 days that have ended: sent, or dropped (they
were interrupted, or their session has ended).

A call whose process has died is "left": the next "hako agent run" that follows its session ends it.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), c, func(s *store.Store) error {
				list, err := agent.Calls(cmd.Context(), s, all, mostAgentCalls)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(list)
				}
				return a.printAgentCalls(list)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "also calls that have ended")
	return cmd
}

func (a *app) printAgentCalls(list []agent.Status) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.stderr, "No calls.")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SESSION\tCALL\tTOOL\tSTATE\tTAKEN")
	for _, c := range list {
		state := string(c.State)
		if !c.Alive && c.State != agent.StateSent && c.State != agent.StateDropped {
			state += ", left"
		}
		printf(table, "%s\t%s\t%s\t%s\t%s\n", c.Session, c.Call, c.Tool, state, moment(c.Taken))
	}
	return table.Flush()
}
