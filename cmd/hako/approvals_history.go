package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) approvalsHistoryCommand() *cobra.Command {
	filter := auditFilter{Query: audit.Query{Asked: true}}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show the calls that asked people, who answered, and their outcomes",
		Long: `Show the calls of the audit log that asked people, with who answered and the outcome, oldest first.

A call is shown if it matches all flags.`,
		Example: "  hako approvals history --since 24h --approver mori@example.com",
		Args:    arguments(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.showAll(cmd, &filter) },
	}
	filter.add(cmd)
	a.showFlags(cmd, &filter)
	cmd.Flags().StringVar(&filter.Approver, "approver", "", "the person who answered")
	return cmd
}
