package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
)

func (a *app) pluginRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke the approval of a plugin, or leave one out that you do not want",
		Long: `Revoke the approval of a plugin. A hako that is serving stops offering its tools at once; calls in flight
end. The entry stays in the consents file, marked as revoked, so that new versions are pending too.

A plugin that was never approved is recorded as not wanted: it stays out of service, and nobody is asked about it
again. hako plugin approve takes both back.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(host.Active, host.Pending),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				file, err := server.LoadConsents(cmd.Context(), v.config, v.store)
				if err != nil {
					return err
				}
				operation := &audit.Operation{Action: "plugin.revoke", Target: audit.Target{Plugin: args[0]}}
				done := "Revoked"
				revoke := func() error {
					err := file.Revoke(cmd.Context(), args[0], audit.ProcessUser())
					i := slices.IndexFunc(v.plugins, func(p host.Status) bool { return p.Name == args[0] && p.Manifest != nil })
					if !errors.Is(err, grant.ErrNoConsent) || i < 0 {
						return err
					}
					done = "Not wanted"
					return file.Decline(cmd.Context(), v.plugins[i].Manifest, v.plugins[i].Digest, audit.ProcessUser())
				}
				if err := a.audited(cmd.Context(), v.config, operation, revoke); err != nil {
					return err
				}
				return printf(a.stdout, "%s; recorded in %s\n", done, file)
			})
		},
	}
}
