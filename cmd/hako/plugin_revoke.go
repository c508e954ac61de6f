package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

func (a *app) pluginRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke the approval of a plugin",
		Long: `Revoke the approval of a plugin. A hako that is serving stops offering its tools at once; calls in flight
end. The entry stays in the consents file, marked as revoked, so that new versions are pending too.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(host.Active),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			return a.withShared(cmd.Context(), c, c.OpenStore, func(s *store.Store) error {
				file, err := server.LoadConsents(cmd.Context(), c, s)
				if err != nil {
					return err
				}
				operation := &audit.Operation{Action: "plugin.revoke", Target: audit.Target{Plugin: args[0]}}
				err = a.audited(cmd.Context(), c, operation,
					func() error { return file.Revoke(cmd.Context(), args[0], audit.ProcessUser()) })
				if err != nil {
					return err
				}
				return printf(a.stdout, "Revoked; recorded in %s\n", file)
			})
		}),
	}
}
