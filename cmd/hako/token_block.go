package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) tokenBlockCommand() *cobra.Command {
	issuer, undo := "", false
	cmd := &cobra.Command{
		Use:   "block USER",
		Short: "Refuse the tokens of OAuth issuers for a user, and logins in the console",
		Long: `Refuse the tokens that OAuth issuers have issued, or will issue, for a user, and the user's logins in the
console. All replicas follow at once.

Without --issuer the user is blocked at all configured issuers. USER is the name that the audit log shows.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAccess(cmd, func(c *config.Config, access *server.Access) error {
				record := func(o *audit.Operation, do func() error) error { return a.audited(cmd.Context(), c, o, do) }
				if undo {
					if err := access.Unblock(cmd.Context(), args[0], issuer, record); err != nil {
						return err
					}
					return terminal.Printf(a.stdout, "Unblocked %s\n", args[0])
				}
				if err := access.Block(cmd.Context(), args[0], issuer, audit.ProcessUser(), record); err != nil {
					return err
				}
				return terminal.Printf(a.stdout, "Blocked %s\n", args[0])
			})
		},
	}
	cmd.Flags().StringVar(&issuer, "issuer", "", "only tokens of the issuer with this URL")
	cmd.Flags().BoolVar(&undo, "undo", false, "accept the tokens again")
	return cmd
}
