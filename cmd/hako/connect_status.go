package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/internal/report"
)

func (a *app) connectStatusCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "status",
		Short: "Show the state of the credentials, without secrets",
		Long: `Show the state of the credentials: whether each is usable, since when and until when, and how to repair
the others. No secrets are shown, no tokens are fetched, and no commands of the configuration are run.

Exit codes: 0 all are usable, 1 one is not.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCredentials(cmd, func(b *credential.Broker) error {
				list, err := b.Status(cmd.Context())
				if err != nil {
					return err
				}
				err = showList(a, list, "no credentials are configured (docs/credentials.md)", report.Credentials)
				unready := func(s credential.Status) bool { return s.State != credential.Ready }
				return failIf(slices.ContainsFunc(list, unready), err)
			})
		},
	})
}

func (a *app) connectRemoveCommand() *cobra.Command {
	tenant := ""
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a connection",
		Long: `Remove a connection: plugins cannot use it from now on. The provider is not notified; revoke the
application's access there if it is no longer needed.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			operation := &audit.Operation{Action: "credential.remove", Subject: audit.Subject{Tenant: tenant},
				Target: audit.Target{Name: args[0]}}
			return a.changeCredentials(cmd, operation, func(b *credential.Broker) error {
				found, err := b.Remove(cmd.Context(), tenant, args[0])
				if err == nil && !found {
					err = fmt.Errorf("there is no such connection: hako connect status lists them")
				}
				if err != nil {
					return err
				}
				return printf(a.stdout, "hako has removed the connection %s; revoke its access at the provider too\n",
					args[0])
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant whose connection it is")
	return cmd
}
