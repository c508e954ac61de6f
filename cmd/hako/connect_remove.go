package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/govern/audit"
)

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
