package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/approval"
)

func (a *app) approvalsWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Print approval requests as they arrive, and answer them",
		Long: `Print approval requests as they arrive. At a terminal, "yes 3" or "no 3" answers the question with that
number. While this runs, hako serve asks operators if the policy requires approval and the caller cannot give it. Ctrl-C
stops it.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withApprovals(cmd, func(c *config.Config, approvals *approval.Queue) error {
				w := &terminal.Watcher{
					IO: a.terminal(), Approvals: approvals, Locale: c.Locale,
					Answer: func(ctx context.Context, q *approval.Question, yes bool) error {
						return a.answer(ctx, c, approvals, q, yes)
					},
				}
				return w.Run(cmd.Context())
			})
		},
	}
}
